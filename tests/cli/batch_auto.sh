# --batch-size auto: the largest batch that fits, from plans alone; what is chosen trains, the next one does not fit.
. "$SOURCE/tests/cli/harness"

train="--model lenet5 --data synthetic:1x28x28,classes=10,images=160 --threads-per-device 1 --epochs 1 --workers 0"

# chosen: the number that the file out tells
chosen() { sed -n 's/^batch size \([0-9]*\): it takes .*/\1/p' out | grep . || { cat out err; die "no batch size in out"; }; }

# fits LIMIT FLAGS…: a batch is chosen, trains, and is the largest multiple of --shards 4 that does
fits() {
    limit=$1
    shift
    rm -rf run
    ok train $train --shards 4 "$@" --device-memory "$limit" --batch-size auto --output-dir run
    batch=$(chosen)
    [ $((batch % 4)) -eq 0 ] || die "$batch is no multiple of the shards"
    has out "$((batch + 4)) would take "
    want=$(hash_of_out)
    python3 -c 'import json, sys; assert json.load(open("run/run.json"))["flags"]["batch-size"] == int(sys.argv[1])' \
        "$batch" || die "run.json has another batch than $batch"
    ok train $train --shards 4 "$@" --device-memory "$limit" --batch-size "$batch"
    same "$(hash_of_out)" "$want" "weights with that number given"
    "$CONVOY" train $train --shards 4 "$@" --device-memory "$limit" --batch-size $((batch + 4)) >out 2>err
    same $? 2 "the exit code with a batch of $((batch + 4))"
    grep -q -e 'is the limit' err || { cat err; die "$((batch + 4)) is refused for another reason"; }
}
fits 4M --devices cpu:0
fits 4M --devices cpu:0-1 --strategy ddp
fits 4M --devices cpu:0-1 --strategy pipeline

# the rate follows the batch; all images; a device's part of what is free
ok train $train --device-memory 100M --batch-size auto --lr-base 0.1
same "$(chosen)" 160 "a batch of all images"
has out 'there are no more images'
has out '= 0.1 x 160/256'
ok train $train --devices cpu:0-1 --batch-size auto
has out "(a device's part of most of the memory that is free)"

fails 2 'not even a batch of 4 images, one a shard, fits' train $train --shards 4 --device-memory 100K --batch-size auto
fails 2 'is not known: give --device-memory' train $train --devices async:0 --batch-size auto
fails 2 'is for training' train $train --batch-size auto --test-only
fails 2 'must be a whole number, or auto' train $train --batch-size most
fails 2 'must be a whole number' eval --model lenet5 --data digits --batch-size auto
fails 2 'must be from 1' train $train --batch-size 0

# the same on every rank, whose own --device-memory may differ only by mistake
for library in openmpi mpich; do
    [ -e "$BUILD/libconvoy_mpi_$library.so" ] || continue
    "$SOURCE/tests/with_mpirun" $library 2 "$CONVOY" train $train --shards 4 --device-memory 4M --batch-size auto >out 2>err
    rc=$?
    [ $rc -ne 77 ] || continue
    [ $rc -eq 0 ] || { cat out err; die "exit code $rc with $library"; }
    two=$(chosen)
    ok train $train --shards 4 --devices cpu:0-1 --device-memory 4M --batch-size auto
    same "$two" "$(chosen)" "the batch of two processes and of one with two devices"
done
