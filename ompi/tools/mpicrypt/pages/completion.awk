# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The table of make.sh -> completion for bash.  A line: | verb | command | words |, "-" for none.

BEGIN {
    print "# Completion of mpicrypt for bash, made from its --help.  For zsh: autoload -U bashcompinit && bashcompinit, then source it."
    print ""
    print "_mpicrypt() {"
    print "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=- command=- words= word i"
    print ""
    print "    _mpicrypt_words() {"
    print "        case \"$1 $2\" in"
}

{
    key = $1 " " $2
    $1 = $2 = ""
    sub(/^ +/, "")
    printf "            '%s') words='%s' ;;\n", key, $0
}

END {
    print "            *) return 1 ;;"
    print "        esac"
    print "    }"
    print ""
    print "    for ((i = 1; i < COMP_CWORD; i++)); do"
    print "        if [[ $verb = - ]] && _mpicrypt_words \"${COMP_WORDS[i]}\" -; then"
    print "            verb=${COMP_WORDS[i]}"
    print "        elif [[ $verb != - && $command = - ]] && _mpicrypt_words \"$verb\" \"${COMP_WORDS[i]}\"; then"
    print "            command=${COMP_WORDS[i]}"
    print "        fi"
    print "    done"
    print "    _mpicrypt_words \"$verb\" \"$command\""
    print "    unset -f _mpicrypt_words"
    print "    COMPREPLY=()"
    print "    if [[ \" $words \" = *\" $before= \"* || $before = = || $current = = ]]; then"
    print "        return                                  # the value of an option: a file, as bash completes it"
    print "    fi"
    print "    for word in ${words//=/}; do                # options once a dash is there; operands are files, too"
    print "        if [[ $word = \"$current\"* && (${current:0:1} = - || ${word:0:1} != -) ]]; then"
    print "            COMPREPLY+=(\"$word\")"
    print "        fi"
    print "    done"
    print "}"
    print "complete -o default -F _mpicrypt mpicrypt"
}
