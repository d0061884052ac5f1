//! The scripts that make shells ask `hindsight __complete`.

use clap::Command;
use clap_complete::Shell;

/// How scripts are installed, for the help of `hindsight completion`.
pub(in crate::cli) const INSTALL: &str =
    "Names, pipelines, namespaces and labels come from the server, if it answers within 250 ms.

Examples:
  hindsight completion bash
  hindsight completion zsh
  hindsight completion fish

To install, for the user:
  bash  source <(hindsight completion bash)       in ~/.bashrc
  zsh   hindsight completion zsh > DIRECTORY/_hindsight       for a DIRECTORY of $fpath
  fish  hindsight completion fish > ~/.config/fish/completions/hindsight.fish";

const BASH: &str = r#"# Completes the commands of hindsight in bash.
_hindsight() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o default 2>/dev/null
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <("$1" __complete --line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _hindsight hindsight
"#;

const ZSH: &str = r#"#compdef hindsight
# Completes the commands of hindsight in zsh.
_hindsight() {
    local line value
    local -a described open
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            _files
            return
        fi
        value=${line%%$'\t'*}
        if [[ $value == *[:=] ]]; then
            open+=("$value")
        elif [[ $line == *$'\t'* ]]; then
            described+=("${value//:/\\:}:${line#*$'\t'}")
        else
            described+=("${value//:/\\:}")
        fi
    done < <("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( ${#open} )) && compadd -S '' -a open
    (( ${#described} )) && _describe hindsight described
}
if [[ "$funcstack[1]" == "_hindsight" ]]; then
    _hindsight "$@"
else
    compdef _hindsight hindsight
fi
"#;

const FISH: &str = r#"# Completes the commands of hindsight in fish.
function __hindsight_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            printf '%s\n' $line
        end
    end
end
complete -c hindsight -f -a '(__hindsight_complete)'
"#;

/// The script for a shell. Those that cannot ask complete commands and flags alone.
pub(in crate::cli) fn script(shell: Shell, command: &mut Command) -> Vec<u8> {
    match shell {
        Shell::Bash => BASH.into(),
        Shell::Zsh => ZSH.into(),
        Shell::Fish => FISH.into(),
        shell => {
            let mut script = Vec::new();
            clap_complete::generate(shell, command, "hindsight", &mut script);
            script
        }
    }
}
