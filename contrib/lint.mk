# SPDX-License-Identifier: Apache-2.0
.PHONY: lint-rules-self-test
