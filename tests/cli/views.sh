# The same files as folder:, tar: and csv: are the same samples in the same order: training ends with the same weights.
. "$SOURCE/tests/cli/harness"
flags="--model lenet5 --input 3x16x16 --resize 20 --crop 16x16 --pad 2 --flip --batch-size 5 --epochs 2"

make_set
for split in train val; do
    (cd set/$split && find . -type f | LC_ALL=C sort) >names
    tar -cf $split-0.tar -C set/$split $(sed -n 1,3p names)
    tar -cf $split-1.tar -C set/$split $(sed 1,3d names)
    sed "s|^\./\([^/]*\).*|set/$split/&,\1,$split|" names >>rows
done
{ echo path,label,split && cat rows; } >list.csv

ok data pack folder:set --to tar:packed --shard-size 10K

threads="0 3"
[ -z "${SANITIZE:-}" ] || threads=3
for data in folder:set 'tar:train-*.tar,val=val-*.tar' 'tar:packed-train-*.tar,val=packed-val-*.tar' csv:list.csv; do
    for workers in $threads; do
        ok train --data "$data" $flags --workers $workers --output-dir run --overwrite
        grep '^done' out | sed 's/.*xxh3/xxh3/' >>hashes
        ok eval --weights run --data "$data" --workers $workers
        grep -o 'top-1.*%' out >>hashes
    done
done
# parts of images, some at half their size, with all that is drawn by chance; by other workers and devices each time
parts() {
    ok train --data "$1" --model resnet20 --input 3x8x8 --crop 8x8 --preset imagenet --color-jitter 0.4,0.4,0.4,0.1 \
        --auto-augment ta_wide --random-erase 0.5 --mixup-alpha 0.2 --cutmix-alpha 1 --batch-size 5 --epochs 2 \
        --shards 4 --threads-per-device 1 --workers "$2" --devices "$3"
    hash_of_out >>parts
}
parts folder:set 0 cpu:0
parts 'tar:train-*.tar,val=val-*.tar' 1 cpu:0-1
parts 'tar:packed-train-*.tar,val=packed-val-*.tar' 2 cpu:0-3
parts csv:list.csv 7 cpu:0
test "$(sort -u parts | wc -l)" = 1 || die "the views of parts differ: $(cat parts)"
test -e train-0.tar.index || die "no index beside the shard"
test "$(sort -u hashes | wc -l)" = 2 || die "the views differ: $(cat hashes)"
test "$(wc -l <hashes)" = $(($(echo $threads | wc -w) * 8)) || die "not all runs are there: $(cat hashes)"
