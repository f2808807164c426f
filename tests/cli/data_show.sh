# `convoy data show`: the same sheet for any number of workers, another one with another seed or augmentation.
. "$SOURCE/tests/cli/harness"
show() { ok data show "$@"; }
show digits --out a.png --workers 0
grep -q '^a.png: 48 of 1437 training images, as epoch 1 begins$' out || die "said: $(cat out)"
show digits --out b.png --workers 3
cmp a.png b.png || die "workers change the sheet"
for other in "--seed 1" "--at-epoch 1" "--no-shuffle" "--random-erase 1" "--columns 7"; do
    show digits --out b.png $other
    ! cmp -s a.png b.png || die "$other changes nothing"
done
show synthetic:3x20x30,classes=3,images=5 --out c.png --columns 2 --auto-augment ra
grep -q '^c.png: 5 of 5' out || die "of few images: $(cat out)"
mkdir -p set/train/one
cp a.png set/train/one/sheet.png && cp c.png set/train/one && mkdir -p set/val/one && cp c.png set/val/one
ok data check folder:set
fails 2 "may be of any size: say how large a crop to take, as in --crop 224x224" data show folder:set --out d.png
fails 2 "--out sheet.png" data show digits
fails 2 "--out sheet.png" data show --out sheet.png
fails 1 nowhere/a.png data show digits --out nowhere/a.png
