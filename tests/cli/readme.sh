# The flags in README.md are those of the program. To bring them up to date: sh tests/cli/readme.sh --fix, with
# CONVOY and SOURCE set.
. "$SOURCE/tests/cli/harness"

"$CONVOY" train --help >help || die "no help"
# the page with the block below the mark replaced by the help
awk '
    /^<!-- help: train -->$/ { print; mark = 1; next }
    mark == 1 && /^```$/     { print; while ((getline line < "help") > 0) print line; mark = 2; next }
    mark == 2 && /^```$/     { mark = 0 }
    mark != 2                { print }
' "$SOURCE/README.md" >page
grep -q '^<!-- help: train -->$' page || die "README.md has no place for the flags"
[ "${1:-}" != --fix ] || cp page "$SOURCE/README.md"
diff "$SOURCE/README.md" page || die "README.md does not show the flags of convoy train: run this with --fix"
