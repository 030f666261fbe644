"""``cardan completion SHELL``: a completion script, made from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from cardan import cli

EXAMPLES = """  source <(cardan completion bash)
  cardan completion zsh > ~/.zfunc/_cardan
  cardan completion fish > ~/.config/fish/completions/cardan.fish"""

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="of which the script is printed")


def run(args: argparse.Namespace) -> int:
    from cardan.examples import REGISTRY

    verbs = words()
    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](verbs, list(REGISTRY)))
    return 0


def words() -> dict[str, list[str]]:
    """The options of every verb, with those of its own verbs, and the names of these."""
    found: dict[str, list[str]] = {}
    for action in cli.parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, parser in action.choices.items():
                found[name] = sorted(set(_words(parser)))
    return found


def _words(parser: argparse.ArgumentParser) -> list[str]:
    found: list[str] = []
    for action in parser._actions:
        found += [option for option in action.option_strings if option.startswith("--")]
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found += [name, *_words(inner)]
    return found


def bash(verbs: Mapping[str, list[str]], names: list[str]) -> str:
    """For bash: verbs, then options, names of the gallery and files."""
    cases = "\n".join(f'    {verb}) words="{" ".join(options)}" ;;' for verb, options in verbs.items())
    return f"""_cardan() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(verbs)} --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words {" ".join(names)}" -- "$word") $(compgen -f -- "$word"))
}}
complete -o filenames -F _cardan cardan"""


def zsh(verbs: Mapping[str, list[str]], names: list[str]) -> str:
    """For zsh, through its support of bash's completion."""
    return f"#compdef cardan\nautoload -U +X bashcompinit && bashcompinit\n{bash(verbs, names)}"


def fish(verbs: Mapping[str, list[str]], names: list[str]) -> str:
    """For fish."""
    lines = [f"complete -c cardan -n __fish_use_subcommand -a '{' '.join(verbs)}'"]
    for verb, options in verbs.items():
        seen = f"-n '__fish_seen_subcommand_from {verb}'"
        lines += [f"complete -c cardan {seen} -l {option[2:]}" for option in options if option.startswith("--")]
        plain = [option for option in options if not option.startswith("--")]
        lines.append(f"complete -c cardan {seen} -a '{' '.join([*plain, *names])}'")
    return "\n".join(lines)
