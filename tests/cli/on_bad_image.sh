# --on-bad-image skip: a training goes on without the images that cannot be read, lists them at the end, and ends with the
# same bits for any number of threads, devices and processes.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images
train="train --data folder:set --model lenet5 --input 3x16x16 --resize 20 --crop 16x16 --flip --batch-size 6 --epochs 2 --shards 2
    --threads-per-device 1 --lr 0.01"

for split in train val; do
    for class in ant bee; do
        mkdir -p set/$split/$class
        cp "$images"/*.png set/$split/$class
    done
done
echo "a letter" >set/train/ant/letter.png
head -c 90 "$images/rgb.png" >set/train/bee/cut.png
ln -s loop.png set/train/bee/loop.png
: >set/train/bee/zero.png # the last of all: the first takes its place

fails 3 "set/train/" $train --on-bad-image error
fails 2 "error, skip" $train --on-bad-image ignore
for flags in "--workers 0" "--workers 3" "--devices cpu:0-1"; do
    ok $train --on-bad-image skip $flags
    has err "skipped: 4 images could not be read, others took their place"
    for name in ant/letter.png bee/cut.png bee/loop.png bee/zero.png; do
        same "$(grep -c "set/train/$name: " err)" 1 "lines of $name"
    done
    hash_of_out >>hashes
done
same "$(sort -u hashes | wc -l)" 1 "different weights"

# processes list what they met; the weights are the same
if [ -z "${SANITIZE:-}" ] && "$SOURCE/tests/with_mpirun" openmpi 2 "$CONVOY" $train --on-bad-image skip --devices cpu:0 >out 2>err; then
    same "$(hash_of_out)" "$(head -n 1 hashes)" "weights of two processes"
    grep -q 'rank [01]: skipped: ' err || { cat err; die "no process says what was skipped"; }
fi

# evaluation leaves none out
cp set/train/ant/letter.png set/val/ant
fails 3 "set/val/ant/letter.png" $train --on-bad-image skip
rm set/val/ant/letter.png
# nothing is left to take their place
rm set/train/bee/loop.png
for file in set/train/*/*; do : >"$file"; done
fails 3 "the file is empty" $train --on-bad-image skip
