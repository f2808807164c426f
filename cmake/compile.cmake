# Flags for all C in the project.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden) # only what is marked CVY_API leaves libconvoy.so
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()
# asserts stay on: they guard our own bugs, and none stands in a hot loop
foreach(type RELEASE RELWITHDEBINFO)
  string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${type} "${CMAKE_C_FLAGS_${type}}")
endforeach()

add_compile_definitions(_GNU_SOURCE)
# fp-contract off: a sum must not depend on which compiler fused a multiply into it; no-math-errno: loops with a
# square root become vectors
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -ffp-contract=off -fno-math-errno)
if(CVY_WERROR)
  add_compile_options(-Werror)
endif()

if(CVY_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "CVY_FUZZ needs clang: cmake --preset fuzz")
  endif()
  set(CVY_SANITIZE address,undefined)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(CVY_SANITIZE)
  add_compile_options(-fsanitize=${CVY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${CVY_SANITIZE})
  add_compile_definitions(CVY_SANITIZED) # gcc and clang tell the code in different ways
  if(CVY_SANITIZE STREQUAL thread)
    add_compile_definitions(CVY_TSAN)
  endif()
endif()

# What tests run with: suppressions for libraries that the sanitizers cannot see into.
set(CVY_TEST_ENVIRONMENT
    "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp:halt_on_error=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/cache")
# The generator of oneDNN 2.6's AMX kernels reads one element past the end of a vector, which a sanitizer's allocator may
# place at the end of mapped memory: under sanitizers the tests use the kernels for the instructions before AMX.
if(CVY_SANITIZE)
  list(APPEND CVY_TEST_ENVIRONMENT "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16")
endif()
