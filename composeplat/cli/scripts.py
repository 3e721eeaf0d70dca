"""The scripts that a shell reads to complete ``platform``: what ``platform completion`` prints.

Owns what each shell does with an answer of :mod:`composeplat.cli.completion`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from composeplat.cli.arguments import App
from composeplat.cli.console import write_output
from composeplat.cli.errors import show_errors
from composeplat.cli.help_text import Guide

app = App()


class Shell(StrEnum):
    """A shell that can be completed for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def script_for(shell: Shell) -> str:
    return _SCRIPTS[shell]


_BASH = r"""# bash completion for platform
_platform() {
    local line kind=
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("$line"); fi
    done < <(_PLATFORM_COMPLETE=bash "$1" "$2" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)
    # For a path nothing is offered here: bash completes it.
    case $kind in
        files) compopt -o default ;;
        folders) compopt -o dirnames ;;
        starts) compopt -o nospace ;;
        starts-or-files)
            compopt -o nospace
            while IFS= read -r line; do
                if [[ -d $line ]]; then line+=/; fi
                printf -v line %q "$line"
                COMPREPLY+=("$line")
            done < <(compgen -f -- "$2") ;;
    esac 2>/dev/null
    return 0
}
complete -F _platform platform
"""

_ZSH = r"""#compdef platform
# zsh completion for platform
_platform() {
    local -a typed answer expl
    typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
    answer=("${(@f)$(_PLATFORM_COMPLETE=zsh ${words[1]} "${typed[@]}" 2>/dev/null </dev/null)}")
    case $answer[1] in
        files) compset -P '--*='; _files ;;
        folders) compset -P '--*='; _wanted directories expl folder _path_files -/ ;;
        words) shift answer; _describe platform answer ;;
        starts) shift answer; _describe platform answer -S '' ;;
        starts-or-files) shift answer; (( $#answer )) && _describe platform answer -S ''; _files ;;
    esac
}
if [[ $funcstack[1] == _platform ]]; then _platform "$@"; else compdef _platform platform; fi
"""

_FISH = r"""# fish completion for platform
function __platform_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    # Without its quotes; one that is still open is closed for that.
    set -l word (string unescape -- "$typed"; or string unescape -- "$typed'"; or string unescape -- "$typed\"")
    set -l answer (env _PLATFORM_COMPLETE=fish $words[1] $words[2..-1] "$word" 2>/dev/null </dev/null)
    # Behind a command that nobody knows, fish itself completes a path.
    switch "$answer[1]"
        case files
            complete -C "__platform_nothing $typed"
        case folders
            complete -C "__platform_nothing $typed" | string match -r '.*/$'
        case words starts
            printf '%s\n' $answer[2..-1]
        case starts-or-files
            printf '%s\n' $answer[2..-1]
            complete -C "__platform_nothing $typed"
    end
end
complete -c platform -f -a '(__platform_complete)'
"""

_SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


@app.command(
    "completion",
    guide=Guide(
        {
            "In this bash": "source <(platform completion bash)",
            "In each bash to come": "echo 'source <(platform completion bash)' >> ~/.bashrc",
            "In fish": "platform completion fish | source",
        },
        "commands.md",
    ),
)
def completion_command(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell that the script is for.")],
) -> None:
    """Print a script that lets a shell complete commands, options and services."""
    with show_errors():
        write_output(script_for(shell))
