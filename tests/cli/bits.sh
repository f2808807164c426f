# The number of devices never changes the result: single, and ddp on 1, 2 and 4 devices, give the same weights for
# the same S and T, every time. Batch-norm, momentum, random crops and a smaller last batch all take part.
. "$SOURCE/tests/cli/harness"

# bits T ARGUMENTS…: the hash after two epochs with S = 4.
bits() {
    threads=$1
    shift
    ok train --data $matrix_data --model resnet20 --shards 4 --threads-per-device $threads --batch-size 64 --epochs 2 \
        --pad 1 --seed 7 --workers 1 --print-freq 1000 "$@"
    has out "S=4 T=$threads, weights xxh3"
    hash_of_out
}

for threads in 1 2; do
    want=$(bits $threads --strategy single --devices cpu:0) || exit 1
    echo "T=$threads: $want"
    same "$(bits $threads --strategy single --devices cpu:0)" "$want" "T=$threads, single again"
    for devices in cpu:0 cpu:0-1 cpu:0-3; do
        same "$(bits $threads --strategy ddp --devices $devices)" "$want" "T=$threads, ddp on $devices"
    done
done
other=$(bits 1 --strategy single --devices cpu:0 --seed 8) || exit 1
[ "$other" != "$want" ] || die "another seed gives the same hash: the hash says nothing"
