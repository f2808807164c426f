# `convoy data stats SPEC`: figures of known images, the same for any number of threads, that training takes as flags.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images

mkdir -p set/train/a set/train/b set/val/a set/val/b
cp "$images/rgb.png" set/train/a/1.png
cp "$images/rgb.png" set/train/a/2.png
cp "$images/444.jpg" set/train/b
cp "$images/rgb.png" set/val/a
cp "$images/rgb.png" set/val/b
for workers in 1 3; do
    ok data stats folder:set --workers $workers
    cp out out$workers
done
cmp -s out1 out3 || die "the result depends on the number of threads"
has out "training: 3 images"
has out "validation: 2 images"
has out "  2 classes, of 1 to 2 images:"
has out "    a: 2"
same "$(grep -c '^--mean ' out)" 1 "lines of flags"
ok train --data folder:set --model lenet5 --input 3x16x16 --resize 16 --batch-size 2 --epochs 1 $(grep '^--mean' out)

echo "a letter" >set/train/b/letter.jpg
ok data stats folder:set
has out "training: 4 images"
has out "  1 of them cannot be read"
ok data stats folder:set --json
has out '"unreadable": 1'
rm set/train/*/*.png set/train/b/444.jpg
cp set/train/b/letter.jpg set/train/a
fails 3 "no image can be read" data stats folder:set
fails 2 "name one data set" data stats
ok data stats digits

# on a terminal a line says how far it is
TERM=xterm python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$CONVOY" data stats digits >out </dev/null ||
    die "no success on a terminal: $(cat out)"
has out "training: read 1437/1437 images"
has out "validation: read 360/360 images"
has out "--mean"
