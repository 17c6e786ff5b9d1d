# SPDX-License-Identifier: Apache-2.0
# Completion of kinf for fish. "kinf __complete" finds the candidates.

function __kinf_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :directories
                __fish_complete_directories "$current" ""
            case '*'
                echo $line
        end
    end
end

complete -c kinf -f -a '(__kinf_complete)'
