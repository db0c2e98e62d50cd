# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Help files -> C: the table that opal/mca/aead/base/aead_base_help.c looks texts up in.  A file has
# lines of text below a [topic]; lines that begin with # are comments.

function close_text() {
    if (open_text) {
        print "     },"
    }
    open_text = 0
}

BEGIN {
    print "/* Made from the help files by standalone/help_texts.awk. */"
    print "#include \"opal/mca/aead/base/aead_base_help.h\"\n"
    print "const opal_aead_base_help_text_t opal_aead_base_help_texts[] = {"
}

FNR == 1 {
    close_text()
    file = FILENAME
    sub(".*/", "", file)
}

/^#/ { next }

/^\[.*\]$/ {
    close_text()
    printf "    {\"%s\", \"%s\",\n", file, substr($0, 2, length($0) - 2)
    open_text = 1
    next
}

open_text {
    gsub(/\\/, "\\\\")
    gsub(/"/, "\\\"")
    printf "     \"%s\\n\"\n", $0
}

END {
    close_text()
    print "    {NULL, NULL, NULL},"
    print "};"
}
