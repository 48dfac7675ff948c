# SPDX-License-Identifier: Apache-2.0
"""Queries as they are written in the tables, and as PromQL.

<NAME> is a metric of metrics.py, <NAME|label="x"> with matchers. A dashboard adds those of its
variables. A name, or a label that the metric does not have, stops the generator.
"""

import re

from metrics import FOREIGN, METRICS

_NAME = re.compile(r"<(\w+)(?:\|([^>]*))?>")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"')


class Wrong(Exception):
    """Something in the tables does not fit together."""


def names(expr):
    """The metrics that a query uses."""
    return [match[0] for match in _NAME.findall(expr)]


def expand(expr, variables=()):
    """PromQL. variables: labels that are dashboard variables of the same name."""
    def one(match):
        name, matchers = match[1], match[2] or ""
        if name in METRICS:
            full, labels = METRICS[name].full_name, METRICS[name].labels
        elif name in FOREIGN:
            full, labels = name, FOREIGN[name]
        else:
            raise Wrong(f"no metric {name!r} in metrics.py, for: {expr}")
        for label in _MATCHER.findall(matchers):
            if label not in labels:
                raise Wrong(f"{name} has no label {label!r}, for: {expr}")
        parts = [f'{label}=~"${label}"' for label in labels if label in variables]
        parts += [matchers] if matchers else []
        return f"{full}{{{','.join(parts)}}}" if parts else full

    text = _NAME.sub(one, " ".join(expr.split()))
    if "collectd_" in expr:
        raise Wrong(f"write <NAME> instead of collectd_..., for: {expr}")
    return text
