# Devices and FIFOs where files belong: refused with a reason, never replaced, never waited for.
. "$SOURCE/tests/cli/harness"

ok train $quick --epochs 1 --output-dir run
safetensors X.safetensors '{"images":{"dtype":"F32","shape":[1,1,8,8],"data_offsets":[0,256]}}'
head -c 256 /dev/zero >>X.safetensors
tensors="predict --weights run --input X.safetensors"
mkfifo fifo
ln -s /dev/null device
for target in fifo device; do
    fails 1 "$target: is there already and is not a regular file" $tensors --output $target
done
[ -p fifo ] || die "the FIFO was replaced"
[ -L device ] || die "the link to a device was replaced"
no_leftovers .

fails 3 "fifo: is not a regular file" eval --data digits --weights fifo
fails 3 "fifo: is not a regular file" eval --data tensors:fifo --weights run
