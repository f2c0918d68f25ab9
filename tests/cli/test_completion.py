#!/usr/bin/env python3
"""Completion of command lines in the shells themselves: they offer what the help texts and the
parser accept."""

import os
import re
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import Skip, check, run, run_command, sluice  # noqa: E402


def listed(text, heading):
    """Returns the names and summaries below a heading of a help text."""
    return dict(re.findall(r"^  (\S+) +(\S.*)$", text.split(heading)[1].split("\n\n")[0], re.M))


def commands():
    """Returns the words of every command that has its own options; for bench, those of its
    benchmarks."""
    names = [[name] for name in listed(sluice("--help")[0], "Commands:\n")]
    return [words for words in names if words != ["bench"]] + \
           [["bench", name] for name in listed(sluice("bench", "--help")[0], "Benchmarks:\n")]


COMMANDS = commands()


class Option:
    """An option of a help text: its names, whether it has a value, and the parser's list of
    choices."""

    def __init__(self, words, letter, name, value, text):
        alias = re.search(r"\(also --([\w-]+)\)", text)
        self.long, self.alias, self.letter = "--" + name, alias and "--" + alias[1], letter and "-" + letter
        self.names = {n for n in (self.long, self.alias, self.letter) if n}
        self.value, self.choices = value, None
        if value and value.isupper():
            said = re.search(r"is not one of ([^;\n]*)", run_command([*words, self.long, "?", "--no-such-option"]).stderr)
            self.choices = set(said[1].split(", ")) if said else None


def options(words):
    found = []
    text = sluice(*words, "--help")[0].split("Options (defaults in brackets):\n")[1].split("\n\n")[0]
    for entry in re.findall(r"^  .*(?:\n {12,}.*)*", text, re.M):
        head = re.match(r"  (?:-(\w), |    )--([\w-]+)(?:\[=\w+\]| (\S+(?: \.\.)?))?(?: {2,}|\s*\n|$)", entry)
        if head[2] != "help":
            found.append(Option(words, head[1], head[2], head[3], re.sub(r"\s+", " ", entry)))
    return found


OPTIONS = {" ".join(words): options(words) for words in COMMANDS}


def asked(command, lines, folder, script):
    """Runs a shell with its script and these lines; checks that there are no errors; returns its
    output lines."""
    with open(os.path.join(folder, "script"), "w") as file:
        file.write(script)
    with open(os.path.join(folder, "lines"), "w") as file:
        file.write("\n".join(lines) + "\n")
    done = subprocess.run([*command, "script", "lines"], cwd=folder, capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stderr == "", f"{command[0]}: {done.returncode} {done.stderr[:500]}")
    return [set(line.split()) for line in done.stdout.splitlines()]


BASH = """set -u
. <(cat "$1.bash")
while IFS= read -r line; do
    read -ra COMP_WORDS <<< "$line"
    [ "${line% }" = "$line" ] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _sluice
    printf '%s ' "${COMPREPLY[@]}"
    echo
done < "$1"
"""

FISH = """source $argv[1].fish
while read -l line
    echo (complete -C "$line" | string split -f 1 \\t)
end < $argv[1]
"""

# zsh completes only on terminals. These functions replace its own functions and print their
# arguments.
ZSH = """_arguments() { local each; for each in "$@"; do print -rn -- "$each"$'\\t'; done }
_describe() { local each; for each in "${(@P)@[-1]}"; do print -rn -- "${each%%:*} "; done }
_sluice() { . ./lines.zsh }
while IFS= read -r line; do
    words=(${=line}); [[ $line = *' ' ]] && words+=('')
    CURRENT=$#words
    _sluice
    print
done < $1
"""


# An option for _arguments: options that it excludes, name, separator of the value, help, value,
# action.
SPECIFICATION = r"(?:\*(?=-)|\([^)]*\))(--?[\w-]+?)([=+]?)\[(?:\\.|[^\]\\])*\](?::(?:\\.|[^:\\])*:(.*))?"


def written(shell, folder):
    if not shutil.which(shell):
        raise Skip(f"there is no {shell}")
    text = sluice("completion", shell)[0]
    with open(os.path.join(folder, "lines." + shell), "w") as file:
        file.write(text)
    done = subprocess.run([shell, "-n", os.path.join(folder, "lines." + shell)], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stderr == "", done.stderr)
    for name in ("a file.tns", "b.npy"):
        open(os.path.join(folder, name), "w").close()
    os.mkdir(os.path.join(folder, "d"))
    return text


def everything_of(shell, command, script, folder):
    """Each shell offers the commands, the options of a command, and the choices, files or folders
    of an option."""
    written(shell, folder)
    fish = shell == "fish"
    lines, wanted = ["sluice "], [{words[0] for words in COMMANDS} | {"help"}]
    for name, given in OPTIONS.items():
        lines.append(f"sluice {name} -" if not fish else f"sluice {name} --")
        wanted.append({n for o in given for n in o.names if not fish or n.startswith("--")}
                      | ({"--help"} if fish else {"-h", "--help"}))
        for option in given:
            if option.choices:
                some = min(option.choices)
                for form in ([f"{option.long}="] if fish else [f"{option.long} ", f"{option.long} = "]):
                    lines.append(f"sluice {name} {form}")
                    wanted.append({form + choice for choice in option.choices} if fish else option.choices)
                lines.append(f"sluice {name} {option.letter or option.long} {some[:2]}")
                wanted.append({choice for choice in option.choices if choice.startswith(some[:2])})
    for got, want, line in zip(asked(command, lines, folder, script), wanted, lines, strict=True):
        check(got == want, f"{shell}: {line!r}: offered {sorted(got)}, wanted {sorted(want)}")
    check(sum(map(len, wanted)) > 500, "there is next to nothing to offer")
    slash = "/" if fish else ""
    lines, wanted = zip(
        ("sluice convert b", {"b.npy"}), ("sluice ttm x.slc --matrix b", {"b.npy"}), ("sluice cpd x.slc --temp-dir ", None),
        ("sluice convert --temp-dir ", {"d" + slash}), ("sluice cpd --init ra", {"random"}), ("sluice cpd --init d", {"d" + slash}),
        ("sluice cpd --rank ", set()), ("sluice completion ", {"bash", "zsh", "fish"}), ("sluice help cp", {"cpd"}),
        ("sluice bench roof", {"roofline"}), ("sluice cp", {"cpd"}))
    for got, want, line in zip(asked(command, lines, folder, script), wanted, lines, strict=True):
        check(want is None or got == want, f"{shell}: {line!r}: offered {sorted(got)}, wanted {want}")


def by_bash(folder):
    everything_of("bash", ["bash", "--norc"], BASH, folder)


def by_fish(folder):
    everything_of("fish", ["fish", "--no-config"], FISH, folder)


def by_zsh(folder):
    written("zsh", folder)
    lines = ["sluice ", "sluice bench ", *(f"sluice {name} -" for name in OPTIONS)]
    with open(os.path.join(folder, "script"), "w") as file:
        file.write(ZSH)
    with open(os.path.join(folder, "lines"), "w") as file:
        file.write("\n".join(lines) + "\n")
    done = subprocess.run(["zsh", "-f", "script", "lines"], cwd=folder, capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stderr == "", done.stderr)
    said = done.stdout.splitlines()
    check(len(said) == len(lines), done.stdout)
    check(set(said[0].split()) >= {words[0] for words in COMMANDS}, said[0])
    check(set(said[1].split()) == {words[1] for words in COMMANDS if words[0] == "bench"}, said[1])
    for line, (name, given) in zip(said[2:], OPTIONS.items()):
        told = [re.fullmatch(SPECIFICATION, each) for each in line.split("\t") if re.match(r"[*(]", each)]
        told = {each[1]: each for each in told if each}
        want = {n for o in given for n in o.names} | {"-h", "--help"}
        check(set(told) == want, f"zsh: {name}: {sorted(told)}, wanted {sorted(want)}")
        for option in given:
            for each in (told[one] for one in option.names):
                check(bool(each[2]) == (each[3] is not None) == bool(option.value), f"zsh: {name}: {each[0]}")
                if option.choices:
                    check(set(each[3].strip("()").split()) == option.choices, f"zsh: {name}: {each[0]}")


def refused(_folder):
    _, messages = sluice("completion", "csh", status=2)
    check(messages == "sluice: 'csh' is not one of bash, zsh, fish\n", messages)
    sluice("completion", status=2)


run([("bash", by_bash), ("zsh", by_zsh), ("fish", by_fish), ("refused", refused)])
