# Photographs are upright as EXIF says, in train, eval and predict alike; --no-exif takes them as they are stored, and
# weights remember it.
. "$SOURCE/tests/cli/harness"
odd=$SOURCE/tests/data/odd
flags="--model lenet5 --input 3x16x16 --crop 16x16 --resize 16 --batch-size 4 --epochs 1 --data folder:set"
for class in ant bee; do
    mkdir -p set/train/$class set/val/$class
done
for i in 1 2 3 4 5 6 7 8; do
    class=$(test $((i % 2)) = 0 && echo ant || echo bee)
    cp "$odd/turned_$i.jpg" set/train/$class
    cp "$odd/turned_$i.jpg" set/val/$class
done

ok train $flags --output-dir upright
upright=$(hash_of_out)
ok train $flags --exif
same "$(hash_of_out)" "$upright" "with --exif"
ok train $flags --no-exif --output-dir stored
stored=$(hash_of_out)
[ "$stored" != "$upright" ] || die "--no-exif changes nothing"

# two files that differ in EXIF alone: as they are stored they are the same
probabilities() {
    ok predict --weights "$@" "$odd/turned_1.jpg" "$odd/turned_6.jpg" --json
    grep -o '"probability": [0-9.]*' out | sort -u | wc -l
}
same "$(probabilities stored)" 2 "what weights that remember --no-exif say of two classes"
same "$(probabilities upright --no-exif)" 2 "the same, asked for"
same "$(probabilities upright)" 4 "of images that were turned"
same "$(probabilities stored --exif)" 4 "the same, asked for"
loss() {
    ok eval --data folder:set --weights "$@"
    grep -o 'loss [0-9.]*' out
}
same "$(loss upright)" "$(loss upright --exif)" "evaluation of what was trained with EXIF"
same "$(loss stored)" "$(loss stored --no-exif)" "evaluation of what was trained without"
ok train --resume upright --epochs 2 --no-exif
grep -q 'otherwise than it began: .*as_stored' err || die "no warning: $(cat err)"
