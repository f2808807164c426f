# `convoy data pack`: the same shards for any number of threads, more of them than files may be open, nothing after a
# failure, and no image larger than --max-side.
. "$SOURCE/tests/cli/harness"
make_set
n_train=$(find set/train -type f | wc -l)

# same_shards A B: of two prefixes.
same_shards() {
    ls "$1"-*.tar | sed "s/^$1//" >names
    same "$(ls "$2"-*.tar | sed "s/^$2//")" "$(cat names)" "shards of $1 and $2"
    while read -r name; do cmp "$1$name" "$2$name" || die "$1 and $2 differ"; done <names
}

ok data pack folder:set --to tar:packed --shard-size 10K
has out "--data 'tar:packed-train-*.tar,val=packed-val-*.tar'"
test "$(ls packed-train-*.tar | wc -l)" -gt 1 || die "one shard only"
for shard in packed-train-*.tar; do tar -tf $shard >/dev/null || die "tar does not read $shard"; done
ok data pack folder:set --to tar:one --shard-size 10K -j 1
ok data pack folder:set --to tar:seven --shard-size 10K -j 7
same_shards packed one
same_shards packed seven

# a shard for each image, far more than files may be open
(ulimit -n 16 && ok data pack folder:set --to tar:many --shard-size 1) || exit 1
same "$(ls many-train-*.tar | wc -l)" "$n_train" "shards of one image"
ok data check 'tar:many-train-*.tar,val=many-val-*.tar'

# nothing is written over, and nothing stays after a failure: of the data, of the command line, of the last renaming
fails 2 "packed-train-00000.tar: is there already" data pack folder:set --to tar:packed
cp -r set broken && echo "a letter" >broken/val/bee/z.png
for workers in 1 5; do
    fails 3 "broken/val/bee/z.png: is no JPEG, PNG or WebP image" data pack folder:broken --to tar:half -j $workers
    test -z "$(ls | grep half)" || die "half a data set is left"
done
# an image that is cut off would stop a training: it is named while packing; one that only seems so is packed as it is
for name in 444.jpg rgb.png lossy.webp; do
    rm -rf broken && cp -r set broken
    image=$SOURCE/tests/data/images/$name
    head -c $(($(wc -c <"$image") * 3 / 4)) "$image" >"broken/train/bee/$name"
    fails 3 "broken/train/bee/$name: is cut off, \`convoy data check\` lists all such: is " \
        data pack folder:broken --to tar:half
    test -z "$(ls | grep half)" || die "half a data set is left"
done
cp -r set endless && head -c -12 "$SOURCE/tests/data/images/rgb.png" >endless/train/bee/endless.png
ok data check folder:endless
ok data pack folder:endless --to tar:endless
fails 2 "its samples are no image files" data pack digits --to tar:digits
fails 2 "name where the shards go" data pack folder:set
: >none
fails 1 "none: cannot make this folder: Not a directory" data pack folder:set --to tar:none/p
# cut off where a member ends: without the end mark it is not whole
size=$(wc -c <packed-train-00000.tar)
head -c $((size - 1024)) packed-train-00000.tar >cut-train-00000.tar
fails 3 "cut-train-00000.tar: byte " data "tar:cut-train-*.tar,val=packed-val-*.tar"
has err "the archive is cut off"
no_leftovers .

# smaller ones: no side above 16, the longer one at 16, the files of the others as they are
ok data pack folder:set --to tar:small --max-side 16
grep -q ' [1-9][0-9]* made smaller (JPEG quality 90)' out || die "nothing was made smaller: $(cat out)"
ok data pack folder:set --to tar:small7 --max-side 16 -j 7
same_shards small small7
ok data check 'tar:small-train-*.tar,val=small-val-*.tar'
python3 - small-train-*.tar <<'EOF' || die "sides are not as --max-side says"
import struct, sys, tarfile

def jpeg_size(data):
    at = 2
    while True:
        marker, n = struct.unpack_from(">xBH", data, at)
        if marker in (0xc0, 0xc1, 0xc2):
            return struct.unpack_from(">HH", data, at + 5)
        at += 2 + n

sizes = [jpeg_size(tar.extractfile(m).read()) for path in sys.argv[1:] for tar in [tarfile.open(path)]
         for m in tar if m.name.endswith(".jpg")]
sys.exit(not (sizes and all(max(s) <= 16 for s in sizes) and any(max(s) == 16 > min(s) for s in sizes)))
EOF
mkdir -p tiny/train/a tiny/val/a
cp "$SOURCE/tests/data/images/rgb.png" tiny/train/a && cp "$SOURCE/tests/data/images/rgb.png" tiny/val/a
ok data pack folder:tiny --to tar:tiny --max-side 1000
has out "0 made smaller"
tar -xOf tiny-train-00000.tar 000000000.png | cmp - tiny/train/a/rgb.png || die "a small image's bytes changed"
