# PyTorch's .pth files are taken wherever safetensors are: the same weights in both give the same numbers.
. "$SOURCE/tests/cli/harness"

pth=$SOURCE/tests/data/lenet5.pth
plain=$SOURCE/tests/golden/models/lenet5.weights.safetensors
for weights in pth plain; do
    eval "file=\$$weights"
    ok eval --data digits --model lenet5 --weights "$file" --json
    grep -v images_per_s out >"$weights"
done
has pth '"loss"'
cmp pth plain
ok train $quick --epochs 1 --weights "$pth" --output-dir one
ok train $quick --epochs 1 --weights "$plain" --output-dir two
cmp one/last/model.safetensors two/last/model.safetensors
seeds=$SOURCE/tests/fuzz/corpus/pth
fails 3 "PyTorch before 1.6" train $quick --weights "$seeds/old"
fails 3 "pathlib.PurePosixPath" train $quick --weights "$seeds/path"
fails 3 "no tensor 'conv1.weight'" train $quick --weights "$seeds/layouts"
head -c 50000 "$pth" >cut.pth
fails 3 "not a whole zip archive" train $quick --weights cut.pth
# a bit that has turned in the middle of a tensor
{ head -c 50000 "$pth"; head -c 1 /dev/zero | tr '\0' '\252'; tail -c +50002 "$pth"; } >turned.pth
cmp -s "$pth" turned.pth && die "the byte was that already"
fails 3 "is damaged: the checksum" train $quick --weights turned.pth

fails 3 "this model needs f32[4,84]; for another number of classes: train with --replace-head" \
    train --data synthetic:1x8x8,classes=4,images=8 --model lenet5 --batch-size 4 --epochs 1 --weights "$pth"

# the names that DistributedDataParallel and compile give: the same weights
n_header=$(od -An -tu8 -N8 "$plain" | tr -d ' ')
for prefix in module. _orig_mod. module._orig_mod.; do
    safetensors wrapped "$(tail -c +9 "$plain" | head -c "$n_header" | sed 's/"\([a-z0-9]*\.[a-z]*\)":/"'$prefix'\1":/g')"
    tail -c +$((n_header + 9)) "$plain" >>wrapped
    grep -aq "\"${prefix}fc3.bias\"" wrapped || die "no name begins with $prefix"
    ok eval --data digits --model lenet5 --weights wrapped --json
    grep -v images_per_s out | cmp - plain || die "other numbers with names that begin with $prefix"
done
