# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What --help prints -> a man page:
#
#     awk -f man.awk -v page=mpicrypt-file -v version=0.1.0 -v others='mpicrypt mpicrypt-key'
#
# A word at the margin in capitals is a heading.  Paragraphs have the indent of their section, 7; a line with more text
# below it that is indented further is a term.  EXAMPLES and VERBS are printed line by line.

function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/~/, "\\(ti", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/`/, "\\(ga", text)
    gsub(/'/, "\\(aq", text)
    return text ~ /^[.]/ ? "\\&" text : text
}

function indent_of(text) {
    match(text, /^ */)
    return RLENGTH
}

{ line[NR] = $0 }

END {
    printf ".TH %s 1 \"\" \"ompi\\-crypt %s\"\n", toupper(roff(page)), version
    print ".nh\n.ad l"                                          # parameters and options stay whole
    for (i = 1; i <= NR; i++) {
        indent = indent_of(line[i])
        text = substr(line[i], indent + 1)
        if (text == "") {
            gap = 1
        } else if (indent == 0) {
            if (verbatim) {
                print ".fi"
            }
            printf ".SH \"%s\"\n", text
            section = text
            verbatim = section ~ /^(EXAMPLES|VERBS|EXIT STATUS|SYNOPSIS)$/
            if (verbatim) {
                print ".nf"
            }
            level = gap = 0
        } else if (section == "NAME") {
            sub("^mpicrypt ", "mpicrypt-", text)                # apropos and whatis know one word only
            sub("^mpicrypt--", "mpicrypt -", text)
            split(text, half, " - ")
            print roff(half[1]) " \\- " roff(substr(text, length(half[1]) + 4))
        } else if (verbatim) {
            print roff(text)
        } else {
            for (; level > indent; level = outer[level]) {
                print ".RE"
            }
            if (level < indent && level != 0) {                 # the text of a term
                print ".RS 4"
                outer[indent] = level
            } else if (gap || level == 0) {
                print ".PP"
            }
            level = indent
            gap = 0
            print (i < NR && line[i + 1] != "" && indent_of(line[i + 1]) > indent ? ".B " : "") roff(text)
        }
    }
    if (verbatim) {
        print ".fi"
    }
    print ".SH \"SEE ALSO\""
    count = split(others, other, " ")
    for (i = 1; i <= count; i++) {
        printf ".BR %s (1)%s\n", roff(other[i]), i < count ? "," : ""
    }
}
