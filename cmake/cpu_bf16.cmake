# The CPU backend's kernels for bfloat16: files that are compiled a second time, with bfloat16 as their element type
# (src/backends/cpu/real.h), for the processors that have it: AVX-512 throughout, so no versions are chosen between.
set(CVY_CPU_REAL activations batch_norm batch_norm_backward batch_norm_backward_shift batch_norm_backward_sums
    batch_norm_moments channel_sum channels dropout eltwise layer_norm layer_norm_backward mean moments mul
    norm_backward pool)

function(cvy_cpu_bf16)
  include(CheckCCompilerFlag)
  set(flags -mavx512f -mavx512bw -mavx512dq -mavx512vl)
  list(JOIN flags " " flag)
  check_c_compiler_flag("${flag}" CVY_HAS_AVX512)
  if(NOT CVY_HAS_AVX512)
    return()
  endif()
  list(TRANSFORM CVY_CPU_REAL REPLACE "(.+)" "src/backends/cpu/\\1.c" OUTPUT_VARIABLE sources)
  add_library(cvy_backend_cpu_bf16 OBJECT ${sources})
  target_compile_options(cvy_backend_cpu_bf16 PRIVATE ${flags})
  target_compile_definitions(cvy_backend_cpu_bf16 PRIVATE CVY_CPU_BF16)
  target_include_directories(cvy_backend_cpu_bf16 PRIVATE include src
                             $<TARGET_PROPERTY:PkgConfig::HWLOC,INTERFACE_INCLUDE_DIRECTORIES>)
  target_sources(cvy_backend_cpu PRIVATE $<TARGET_OBJECTS:cvy_backend_cpu_bf16>)
  target_compile_definitions(cvy_backend_cpu PRIVATE CVY_CPU_HAS_BF16)
  set_property(GLOBAL APPEND PROPERTY CVY_LAYERS cvy_backend_cpu_bf16) # their objects, for libconvoy
endfunction()
