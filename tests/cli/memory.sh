# --device-memory: a plan that takes more on a device is refused, with the numbers and with what fits, which trains.
. "$SOURCE/tests/cli/harness"

model="--model resnet20 --data synthetic:3x32x32,classes=10,images=64 --batch-size 64 --shards 8 --threads-per-device 1
    --devices cpu:0-1"

# The largest device's MB, as explain says them.
need() {
    ok explain $model "$@"
    awk '/^stage /                        { table = 1; next }
         table && /^ *[0-9]/ && $7 > most { most = $7 }
         !table && /^  all /              { most = $2 }
         END                              { print most }' out
}

ddp=$(need --strategy ddp) mp=$(need --strategy mp)
limit=$(awk "BEGIN { print int(($ddp + $mp) / 2 * 1000) \"K\" }")
echo "ddp needs $ddp MB, mp $mp MB, the limit is $limit"

fails 2 "strategy ddp needs $(printf %.1f "$ddp") MB on each device" train $model --epochs 1 --strategy ddp \
    --device-memory $limit --output-dir refused
has err "these fit: --strategy mp ($(printf %.1f "$mp") MB)"
[ ! -e refused ] || die "a refused run left a folder"
fails 2 "strategy ddp needs" explain $model --strategy ddp --device-memory $limit
ok explain $model --strategy mp --device-memory $limit
has out "it fits"
ok train $model --epochs 1 --strategy mp --device-memory $limit
took=$(sed -n 's/^ready.* first touch of \([0-9]*\) MB a device$/\1/p' out)
[ "$took" -le "${limit%???K}" ] || die "it took $took MB of $limit"
want=$(hash_of_out)
ok train $model --epochs 1 --strategy ddp
same "$(hash_of_out)" "$want" "the same bits under the limit"

fails 2 "no other strategy fits: take more devices, more shards or a smaller batch" explain $model --strategy ddp \
    --device-memory 100K
fails 2 "must be bytes, like 500M, 1.5G or 2Gi" train $model --device-memory 5X
fails 2 "must be bytes" train $model --device-memory -1

# memory that the system does not give (sanitizers reserve far more themselves)
if [ -z "${SANITIZE:-}" ]; then
    (
        ulimit -v 1000000
        fails 1 "MB of memory for a device; use a smaller batch or more shards" train --model vgg16 --epochs 1 \
            --data synthetic:3x224x224,classes=1000,images=64 --batch-size 64 --devices cpu:0
    ) || exit 1
fi
