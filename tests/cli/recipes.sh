# Every flag of ours that the table in docs/recipes.md names is one of `convoy train`; every row has its three cells.
. "$SOURCE/tests/cli/harness"

"$CONVOY" train --help >help || die "no help"
awk '/^<!-- options -->$/ { on = 1; next } on && /^$/ { exit } on && /^\| [`]/' "$SOURCE/docs/recipes.md" >rows
[ "$(wc -l <rows)" -ge 51 ] || die "the table lacks rows"
awk -F '|' 'NF != 5 || $3 ~ /^ *$/ { print; bad = 1 } END { exit bad }' rows || die "a row has not three cells"
cut -d '|' -f 3 rows | grep -o -- '--[a-z-]*' | sort -u >ours
[ "$(wc -l <ours)" -ge 25 ] || die "hardly any flag of ours"
while read -r flag; do
    grep -Eq -- "(^| )--(\[no-\])?${flag#--}( |,|\$)" help || die "no $flag in --help"
done <ours
