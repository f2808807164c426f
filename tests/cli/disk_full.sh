# A full disk: exit code 1, and the checkpoint that was there before is there still, whole. A small tmpfs is the
# disk.
. "$SOURCE/tests/cli/harness"

[ "$(id -u)" -eq 0 ] || skip "mounting a small tmpfs needs root"
mkdir disk
mount -t tmpfs -o size=768k tmpfs disk 2>/dev/null || skip "tmpfs cannot be mounted here"
trap 'umount disk' EXIT

ok train $quick --epochs 1 --output-dir disk/run
want=$(hash_of_out) || exit 1
cp disk/run/last/model.safetensors before
head -c 1000000 /dev/zero >disk/ballast 2>/dev/null
fails 1 "disk/run/run.json: cannot be written: No space left on device" \
    train $quick --epochs 2 --resume disk/run --output-dir disk/run
has err "No space left on device"
cmp before disk/run/last/model.safetensors || die "the old checkpoint changed"
no_leftovers disk
ok eval --weights disk/run/last --data digits

# full from the start: nothing but whole files
fails 1 "No space left on device" train $quick --epochs 1 --output-dir disk/other
no_leftovers disk
for file in disk/other/*; do
    [ ! -f "$file" ] || [ "$(tail -c 1 "$file" | wc -l)" -le 1 ] || die "half-written: $file"
done
