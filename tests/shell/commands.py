# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# commands.py LIST DOCUMENT...: every command of the documents' literal blocks has
# to be in the list, and every one of the list in a document.  Prints those of the
# section that is to be run, a line each: SECTION TAB COMMAND.
import re
import sys

# What a line of a block begins with if it is one for the shell.
STARTS = re.compile(r"(OMPI_MCA_\w+=\S+ )?(mpirun|mpicrypt|srun|sbatch|make|module|apt|cd|cp|mkdir|mpicc|mpifort|ompi_info|git)\s|\(cd |\. |\./|\.\./|"
                    r"(examples|packaging|tests)/\S|\$P/|rpmbuild|dpkg-buildpackage")


def blocks(path):
    """The lines of literal blocks: after '::', or indented by four in Markdown."""
    lines = open(path, encoding="utf-8").read().split("\n")
    markdown, inside, indent = path.endswith(".md"), False, 0
    for number, line in enumerate(lines):
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        if markdown:
            if line.startswith("    "):
                yield number + 1, bare
            continue
        if inside and bare and depth <= indent:
            inside = False
        if inside:
            yield number + 1, bare
        elif bare.endswith("::") and not bare.startswith(".. "):
            inside, indent = True, depth


def commands(path):
    joined = ""
    for number, line in blocks(path):
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if joined:
            line = joined + " " + line
        joined = ""
        if line.endswith("\\"):
            joined = line[:-1].strip()
        elif STARTS.match(line):
            yield number, re.sub(r"\s+", " ", line)


sections, current = {}, None
for line in open(sys.argv[1], encoding="utf-8"):
    line = line.rstrip("\n")
    if line.startswith("["):
        current = line.strip("[]")
    elif line and line[0] not in "#!":
        assert line not in sections, f"{sys.argv[1]}: twice: {line}"
        sections[line] = current

seen, missing = set(), []
for path in sys.argv[2:]:
    for number, command in commands(path):
        seen.add(command)
        if command not in sections:
            missing.append(f"{path}:{number}: {command}")
for line in missing:
    print("not in the list:", line, file=sys.stderr)
for line in sections:
    if line not in seen:
        print("in the list, but in no document:", line, file=sys.stderr)
if missing or set(sections) - seen:
    sys.exit(1)
for command, section in sections.items():
    print(f"{section}\t{command}")
