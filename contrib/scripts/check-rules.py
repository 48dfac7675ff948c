#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the house rules that no compiler knows; CONTRIBUTING.md gives their reasons.

check-rules.py [FOLDER]       check a tree (default: the one this script is in)
check-rules.py --self-test    prove that each rule fires on a bad sample and not on a good one
"""

import os
import re
import sys
import tempfile

ROOMS = ("lib", "switch", "agent", "collectd-plugin", "cli", "ves")
SPDX = "SPDX-License-Identifier: Apache-2.0"
GENERATED = ("config.h", "build_info.h")
COLUMNS = 100  # of C, a tab goes to the next multiple of 8


def calls(*names):
    """Matches a call of one of these functions, but not of a member with that name."""
    return re.compile(r"(?<![\w.>])(?:%s)\s*\(" % "|".join(names))


FAST_FORBIDDEN = calls(
    # text and logs
    r"\w*printf\w*", r"f?puts", r"f?putc(?:har)?", "perror", "syslog", r"\w*_?log(?:_\w+)?",
    "RTE_LOG", r"sd_\w+",
    # memory
    r"\w*[mc]alloc\w*", r"\w*realloc\w*", "free", "rte_free", "aligned_alloc", "posix_memalign",
    r"str[n]?dup", "mmap", "munmap", "madvise", "mlock", "mlockall", "brk",
    # locks and waiting
    r"(?:\w*_)?mutex\w*", r"\w*spinlock\w*", r"\w*rwlock\w*", r"\w*_(?:try|un)?lock", r"pthread_\w+",
    r"sem_\w+", r"cnd_\w+", r"u?sleep", r"(?:clock_)?nanosleep", r"\w*delay_(?:us|ms)\w*", "sched_yield", r"p?poll",
    r"epoll_\w+", "select", "futex", "flock",
    # system calls, clocks too: the loop's own cycle count is the clock
    "syscall", "open", "openat", "close", r"p?readv?", r"p?writev?", "ioctl", "fcntl", "send",
    "sendto", r"sendm?msg", "recv", "recvfrom", r"recvm?msg", "socket", "clock_gettime",
    "gettimeofday", "time", "getpid", "gettid", "kill", "tgkill", "fork", r"exec[vlpe]+",
    r"sched_set\w+", r"setpriority", "prctl", "abort", "exit", "_exit",
)

# (rule, files, what is looked at, pattern, reason)
#   include  the argument of each #include
#   code     C with comments and strings blanked
#   text     the file as it is
RULES = [
    ("lib-include", r"lib/.*\.[ch]$", "include", r"<(?:rte_|dpdk/|collectd/|systemd/)",
     "lib/ knows nothing of DPDK, collectd or systemd"),
    ("lib-pure", r"lib/.*\.[ch]$", "code",
     r"\bstd(?:err|out)\b|(?<![\w.>])(?:printf|perror|v?syslog|_?exit|abort|signal|sigaction|"
     r"pthread_create|thrd_create)\s*\(",
     "lib/ never prints, exits, starts a thread or touches signals"),
    ("no-dpdk", r"(?:agent|cli|collectd-plugin|ves)/.*\.[ch]$", "include", r"<(?:rte_|dpdk/)",
     "only switch/ may use DPDK"),
    ("no-collectd", r"(?:switch|agent|cli|ves)/.*\.[ch]$", "include", r"<collectd/",
     "only collectd-plugin/ may use collectd"),
    ("network", r"(?!ves/|tests/).*\.[ch]$", "include", r"<curl/",
     "only ves/ talks to the network"),
    ("plugin-config", r"collectd-plugin/.*\.[ch]$", "include",
     r'["</](?:config|build_info)\.h[">]',
     "collectd's config.h and ours must not meet"),
    ("switch-judges", r"switch/.*\.[ch]$", "include", r"pmdp_(?:reader|detector|watch)",
     "the switch never judges itself"),
    ("switch-judges", r"switch/.*\.[ch]$", "code", r"\bpmdp_(?:reader|detector|watch)_\w+\s*\(",
     "the switch never judges itself"),
    ("fast", r"switch/.*_fast\.[ch]$", "code", FAST_FORBIDDEN,
     "nothing that prints, allocates, locks or enters the kernel in a fast-path file"),
    ("run-needs", r"tests/(?:common|tools)/.*\.c$", "include", r"<cmocka",
     "make run builds these, on machines without the test packages"),
    ("volatile", r".*\.[ch]$", "code", r"^(?!.*\basm\b|.*__asm__).*\bvolatile\b",
     "volatile is no synchronisation: use <stdatomic.h>"),
    ("old-atomics", r".*\.[ch]$", "code", r"\b__(?:sync|atomic)_\w+",
     "use <stdatomic.h>"),
    ("issue-number", r".*\.(?:[ch]|py|sh|mk|md|ac|in)$|.*(?:Makefile|/run)$", "text",
     r"(?i)\b(?:issue|ticket|bug)s? *#?\d+\b|(?:^|[\s(])#\d{1,4}\b",
     "say what it is, not its number in some tracker"),
]

# (rule expected or None, file, content beyond the SPDX line)
SAMPLES = [
    ("lib-include", "lib/pmdp_a.c", "#include <rte_eal.h>\n"),
    ("lib-include", "lib/pmdp_a.h", "#  include <collectd/core/daemon/plugin.h>\n"),
    ("lib-pure", "lib/pmdp_a.c", "fprintf(stderr, \"\");\n"),
    ("lib-pure", "lib/pmdp_a.c", "exit(1);\n"),
    (None, "lib/pmdp_a.c", "snprintf(buf, n, \"\");\n// never to stderr, never exit(1)\n"),
    ("no-dpdk", "agent/ag_a.c", "#include <rte_cycles.h>\n"),
    ("no-dpdk", "cli/cli_a.h", "#include <rte_cycles.h>\n"),
    ("no-dpdk", "collectd-plugin/cp_a.c", "#include <rte_cycles.h>\n"),
    (None, "switch/sw_a.c", "#include <rte_cycles.h>\n"),
    ("no-collectd", "agent/ag_a.c", "#include <collectd/core/daemon/plugin.h>\n"),
    ("network", "agent/ag_a.c", "#include <curl/curl.h>\n"),
    (None, "ves/vs_a.c", "#include <curl/curl.h>\n"),
    ("plugin-config", "collectd-plugin/cp_a.c", "#include \"config.h\"\n"),
    ("plugin-config", "collectd-plugin/cp_a.c", "#include \"build_info.h\"\n"),
    (None, "agent/ag_a.c", "#include \"config.h\"\n#include \"build_info.h\"\n"),
    ("switch-judges", "switch/sw_a.c", "#include <pmdp_detector.h>\n"),
    ("switch-judges", "switch/sw_a.c", "pmdp_reader_open(name, NULL, &r);\n"),
    ("include-direction", "agent/ag_a.c", "#include \"sw_port.h\"\n"),
    ("include-direction", "cli/cli_a.c", "#include \"../agent/ag_conf.h\"\n"),
    ("include-direction", "switch/sw_a.c", "#include \"tests/common/fake.h\"\n"),
    ("include-direction", "lib/pmdp_a.c", "#include \"ag_conf.h\"\n"),
    (None, "switch/sw_a.c", "#include \"sw_port.h\"\n#include \"pmdp_good.h\"\n"),
    (None, "tests/unit/test_a.c", "#include \"ag_conf.h\"\n"),
    ("fast", "switch/sw_a_fast.c", "printf(\"x\");\n"),
    ("fast", "switch/sw_a_fast.h", "p = rte_zmalloc(NULL, 1, 0);\n"),
    ("fast", "switch/sw_a_fast.c", "free(p);\n"),
    ("fast", "switch/sw_a_fast.c", "pthread_mutex_lock(&m);\n"),
    ("fast", "switch/sw_a_fast.c", "rte_spinlock_lock(&l);\n"),
    ("fast", "switch/sw_a_fast.c", "usleep(1);\n"),
    ("fast", "switch/sw_a_fast.c", "n = write (fd, b, 1);\n"),
    ("fast", "switch/sw_a_fast.c", "RTE_LOG(ERR, USER1, \"x\");\n"),
    ("fast", "switch/sw_a_fast.c", "sw_log_warn(\"x\");\n"),
    (None, "switch/sw_a_fast.c", "// write(fd), then free(p)\nn = port->send(q);\nrte_log2_u32(n);\n"
     "rte_pktmbuf_free(m);\npmdp_lane_sleep(lane, 0);\nlane_time_add(1);\nv = _mm512_permutexvar_epi8(a, b);\n"),
    (None, "switch/sw_a.c", "printf(\"x\");\nfree(p);\n"),
    ("run-needs", "tests/common/a.c", "#include <cmocka.h>\n"),
    (None, "tests/unit/a.c", "#include <cmocka.h>\n"),
    ("volatile", "cli/cli_a.c", "static volatile int stop;\n"),
    (None, "cli/cli_a.c", "asm volatile(\"pause\");\n/* volatile\n * volatile */\n"),
    ("old-atomics", "tests/tools/a.c", "__atomic_load_n(&x, __ATOMIC_RELAXED);\n"),
    ("old-atomics", "agent/ag_a.c", "__sync_synchronize();\n"),
    ("issue-number", "docs/a.md", "As issue %d says\n" % 12),
    ("issue-number", "agent/ag_a.c", "// see #%d\n" % 12),
    (None, "agent/ag_a.c", "#if 1\n#endif\nprintf(\"%#06x\", x);\n"),
    ("columns", "lib/pmdp_a.h", "// " + 98 * "x" + "\n"),
    ("columns", "agent/ag_a.c", "\tx = 1;\t//" + 83 * "x" + "\n"),
    (None, "agent/ag_a.c", "// " + 97 * "x" + "\n\tx = 1;\t//" + 82 * "x" + "\n"),
    (None, "docs/a.md", 200 * "x" + "\n"),
    ("spdx", "agent/ag_a.c", None),
    ("spdx", "contrib/a.sh", None),
]


def blank(match):
    """Keeps the lines, so that numbers stay right."""
    return "\n" * match.group(0).count("\n") or " "


COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"][^>"]+[>"])', re.M)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def check_spdx(path, text):
    first = text.split("\n", 2)
    if path.endswith((".c", ".h", ".h.in")):
        return first[0] == "// " + SPDX
    if first[0].startswith("#!"):
        return len(first) > 1 and first[1] == "# " + SPDX
    return first[0] == "# " + SPDX


def check_file(root, path, headers):
    """Yields (rule, line, reason) of one file; headers maps a room to the names of its headers."""
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        text = file.read()

    if re.search(r"\.(?:[ch]|py|sh|mk|ac|mk\.in|h\.in)$|(?:^|/)(?:Makefile|run)$", path) \
            or text.startswith("#!"):
        if not check_spdx(path, text):
            yield "spdx", 1, f"begin with the line '{SPDX}' (in scripts: after the #! line)"

    is_c = path.endswith((".c", ".h"))
    code = COMMENT_OR_STRING.sub(blank, text) if is_c else ""
    includes = [(m.group(1), line_of(text, m.start())) for m in INCLUDE.finditer(text)] \
        if is_c else []

    for rule, files, kind, pattern, reason in RULES:
        if not re.match(files, path):
            continue
        if kind == "include":
            for name, line in includes:
                if re.search(pattern, name):
                    yield rule, line, f"{name}: {reason}"
        else:
            target = code if kind == "code" else text
            for number, content in enumerate(target.split("\n"), 1):
                if re.search(pattern, content):
                    yield rule, number, reason

    if is_c:  # clang-format breaks neither comments nor strings
        for number, content in enumerate(text.split("\n"), 1):
            width = len(content.expandtabs(8))
            if width > COLUMNS:
                yield "columns", number, f"{width} columns, {COLUMNS} at the most"

    room = path.split("/", 1)[0]
    if room in ROOMS:
        allowed = headers.get(room, set()) | headers.get("lib", set()) | set(GENERATED)
        for name, line in includes:
            if name.startswith('"') and name.strip('"') not in allowed:
                yield "include-direction", line, f"{name} is neither of {room}/ nor of lib/"


def files_of(root):
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(s for s in subfolders
                               if s not in (".git", "__pycache__") and not s.startswith("build"))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not os.path.islink(os.path.join(root, path)):
                yield path


def check_tree(root):
    paths = list(files_of(root))
    headers = {room: {p.split("/", 1)[1] for p in paths
                      if p.startswith(room + "/") and p.endswith(".h")} for room in ROOMS}
    for path in paths:
        for rule, line, reason in check_file(root, path, headers):
            yield path, line, rule, reason


def self_test():
    wrong = 0
    tested = set()
    for expected, path, content in SAMPLES:
        with tempfile.TemporaryDirectory() as root:
            tree = {"lib/pmdp_good.h": "", "switch/sw_port.h": "", "agent/ag_conf.h": "",
                    path: content}
            for name, body in tree.items():
                comment = "//" if name.endswith((".c", ".h")) else "#"
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write("int x;\n" if body is None else f"{comment} {SPDX}\n{body}")
            found = {rule for _, _, rule, _ in check_tree(root)}
        if found != ({expected} if expected else set()):
            print(f"{path}: expected {expected}, got {sorted(found)}, for:\n{content}")
            wrong += 1
        tested.add(expected)
    untested = {rule[0] for rule in RULES} | {"spdx", "include-direction", "columns"}
    untested -= tested
    if untested:
        print(f"rules without a bad sample: {sorted(untested)}")
    print(f"house rules, self-test: {len(SAMPLES) - wrong} of {len(SAMPLES)} samples right")
    return 1 if wrong or untested else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = sys.argv[1] if len(sys.argv) > 1 else \
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    found = list(check_tree(root))
    for path, line, rule, reason in found:
        print(f"{path}:{line}: {rule}: {reason}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
