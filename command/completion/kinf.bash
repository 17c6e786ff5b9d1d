# SPDX-License-Identifier: Apache-2.0
# Completion of kinf for bash. "kinf __complete" finds the candidates.

_kinf() {
    local cur=${COMP_WORDS[COMP_CWORD]} words=() word line candidate i
    # bash cuts words at = and :, kinf does not: join the parts that no blank separates.
    local typed=${COMP_LINE:0:COMP_POINT} rest=$COMP_LINE
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [ "$i" -gt 0 ] && [[ $rest != [[:blank:]]* ]] && [ ${#words[@]} -gt 0 ]; then
            words[-1]+=$word
        else
            words+=("$word")
            rest=${rest#"${rest%%[![:blank:]]*}"}
        fi
        rest=${rest#"$word"}
    done
    [[ $typed == *[[:blank:]] ]] && [ -n "${words[-1]}" ] && words+=("")
    # bash replaces only what follows the last = or : of the word.
    local whole=${words[-1]} cut
    cut=${whole%"$cur"}
    [[ $whole == *[=:] ]] && cut=$whole
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
        :directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
        esac
        candidate=${line%%$'\t'*}
        candidate=${candidate#"$cut"}
        # A role may be called 'a $(b)'.
        [[ $candidate == *[^[:alnum:]_./:=,@%+-]* ]] && printf -v candidate %q "$candidate"
        COMPREPLY+=("$candidate")
    done < <("${COMP_WORDS[0]}" __complete "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace
}

complete -F _kinf kinf
