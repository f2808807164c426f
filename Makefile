# The front door. Everything real is in CMakeLists.txt; the program is built at build/convoy.
#   make demo      install what is missing, build, train a small network on two virtual devices
#   make test      the same set-up, then every test
#   make install PREFIX=/usr/local
#   make check-gpu gpu-bundle      try Convoy on an NVIDIA GPU; pack what another machine needs to try it
#   make lint | format | sanitize | fuzz | clean
PREFIX = /usr/local
JOBS := $(shell nproc)
DEMO = train --data digits --model resnet20 --strategy ddp --devices cpu:0-1 --batch-size 32 --epochs 12 \
	--lr 0.1 --lr-scheduler onecycle --wd 5e-4 --pad 1

# configure and build one preset; run its tests
build_preset = cmake --preset $(1) > /dev/null && cmake --build $(2) -j $(JOBS)
test_preset = ctest --test-dir $(1) --output-on-failure -j $(JOBS)

.PHONY: all build demo test install check-gpu gpu-bundle lint format sanitize fuzz clean
all: build

build:
	@tools/install-deps build
	@$(call build_preset,release,build) --target product

demo: build
	./build/convoy $(DEMO)

test:
	@tools/install-deps build
	@$(call build_preset,release,build)
	@$(call test_preset,build)

install: build
	cmake --install build --prefix "$(PREFIX)"

check-gpu: build
	@cmake --build build -j $(JOBS) --target convoy_cuda
	@tools/check_gpu

gpu-bundle: build
	@cmake --build build -j $(JOBS) --target convoy_cuda
	@tools/gpu_bundle

lint:
	@tools/install-deps ci
	@cmake --preset release > /dev/null
	@tools/lint build

format:
	@tools/lint --fix

# the whole suite under AddressSanitizer + UndefinedBehaviorSanitizer (gcc), then under ThreadSanitizer (clang)
sanitize:
	@tools/install-deps ci
	@$(call build_preset,asan,build-asan)
	@$(call test_preset,build-asan)
	@$(call build_preset,tsan,build-tsan)
	@$(call test_preset,build-tsan)

fuzz:
	@tools/install-deps ci
	@$(call build_preset,fuzz,build-fuzz) --target fuzzers
	@$(call test_preset,build-fuzz) -R '^fuzz[.]'

clean:
	rm -rf build build-*
