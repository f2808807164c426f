# The CUDA plugin: libconvoy_cuda.so for GPUs where the CUDA toolkit with cuDNN and cuBLAS is there, and the same files
# with the stand-in of tests/fakecuda as fakecuda/libconvoy_cuda.so, which needs the toolkit's headers alone.

# What program and plugin both read: a hash of it says whether they belong together.
set(abi_headers include/convoy/status.h include/convoy/graph.h include/convoy/data.h include/convoy/session.h src/base/status.h
    src/base/log.h src/base/text.h src/graph/shape.h src/graph/op.h src/rt/backend.h src/rt/backend_plugin.h
    src/rt/stream.h src/rt/program.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${abi_headers})
set(abi "")
foreach(header ${abi_headers})
  file(SHA256 ${CMAKE_SOURCE_DIR}/${header} hash)
  string(APPEND abi ${hash})
endforeach()
string(SHA256 abi "${abi}")
string(SUBSTRING ${abi} 0 16 abi)
set(CVY_BACKEND_ABI "CVY_BACKEND_ABI=\"${PROJECT_VERSION}-${abi}\"")
set_source_files_properties(src/rt/backend.c PROPERTIES COMPILE_DEFINITIONS "${CVY_BACKEND_ABI}")

# compute capabilities; as CMake has it, the variable CUDAARCHS of the environment names others
set(architectures 75 80 86 89 90 100 120)
if(NOT "$ENV{CUDAARCHS}" STREQUAL "")
  set(architectures $ENV{CUDAARCHS})
endif()
set(CVY_CUDA_ARCHITECTURES ${architectures} CACHE STRING "compute capabilities of GPUs to compile for")

# cvy_cuda_target(NAME FOLDER SOURCE…): the plugin's files and SOURCE… as FOLDER/libconvoy_cuda.so.
function(cvy_cuda_target name folder)
  file(GLOB sources CONFIGURE_DEPENDS plugins/cuda/*.c plugins/cuda/operators/*.c)
  add_library(${name} MODULE ${sources} ${ARGN})
  target_include_directories(${name} PRIVATE plugins/cuda ${CMAKE_BINARY_DIR}/cuda src include)
  target_include_directories(${name} SYSTEM PRIVATE ${CVY_CUDA_INCLUDE})
  target_link_libraries(${name} PRIVATE cvy_plugin_base)
  target_compile_definitions(${name} PRIVATE "${CVY_BACKEND_ABI}")
  set_target_properties(${name} PROPERTIES OUTPUT_NAME convoy_cuda LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
endfunction()

function(cvy_cuda_plugin)
  find_path(CVY_CUDA_INCLUDE cudnn.h HINTS /usr/local/cuda/include $ENV{CUDA_HOME}/include)
  if(NOT CVY_CUDA_INCLUDE)
    message(STATUS "Convoy without cuda: there is no cudnn.h of a CUDA toolkit")
    return()
  endif()
  # all bodies of functions, for both sides
  file(GLOB bodies CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/plugins/cuda plugins/cuda/functions/*.h)
  list(TRANSFORM bodies REPLACE "(.+)" "#include \"\\1\"\n")
  string(JOIN "" text ${bodies})
  file(CONFIGURE OUTPUT cuda/functions_all.h CONTENT "${text}")
  # copies of the layers that a plugin stands on
  add_library(cvy_plugin_base STATIC $<TARGET_OBJECTS:cvy_base> $<TARGET_OBJECTS:cvy_graph> $<TARGET_OBJECTS:cvy_ops>
              src/rt/ingest.c)
  target_include_directories(cvy_plugin_base PUBLIC include src)
  target_link_libraries(cvy_plugin_base PUBLIC Threads::Threads m PkgConfig::XXHASH PkgConfig::JANSSON PkgConfig::ZLIB)

  # the stand-in for CUDA, with the asynchronous test backend's check of order, its faults and its random picks
  file(GLOB fake CONFIGURE_DEPENDS tests/fakecuda/*.c)
  set(fake_tests ${fake})
  list(FILTER fake EXCLUDE REGEX "_test\\.c$")
  list(FILTER fake_tests INCLUDE REGEX "_test\\.c$")
  set(async order.c faults.c pick.c)
  list(TRANSFORM async PREPEND src/backends/async/)
  add_library(cvy_fakecuda STATIC ${fake} ${async} src/rt/instr_text.c)
  target_include_directories(cvy_fakecuda PUBLIC plugins/cuda tests/fakecuda ${CMAKE_BINARY_DIR}/cuda)
  target_include_directories(cvy_fakecuda SYSTEM PUBLIC ${CVY_CUDA_INCLUDE})
  target_link_libraries(cvy_fakecuda PUBLIC cvy_plugin_base)
  cvy_cuda_target(convoy_fakecuda fakecuda)
  target_link_libraries(convoy_fakecuda PRIVATE cvy_fakecuda)
  foreach(test ${fake_tests})
    get_filename_component(stem ${test} NAME_WE)
    string(REGEX REPLACE "_test$" "" stem ${stem})
    cvy_test(cuda.fake_${stem} ${test} cvy_fakecuda)
    set_property(TEST cuda.fake_${stem} PROPERTY LABELS cuda)
  endforeach()

  # again with the CUDA code itself, thread by thread: fakesimt/libconvoy_cuda.so
  find_program(CVY_CXX NAMES c++ g++ clang++)
  if(CVY_CXX AND NOT CVY_SANITIZE) # sanitizers lose their way in its contexts
    set(simt ${CMAKE_BINARY_DIR}/cuda/launch_simt.o)
    add_custom_command(
      OUTPUT ${simt} DEPFILE ${simt}.d DEPENDS tests/fakecuda/launch_simt.cc ${CMAKE_BINARY_DIR}/cuda/functions_all.h
      COMMAND ${CVY_CXX} -c -O2 -std=c++17 -fPIC -fvisibility=hidden -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas
              $<$<BOOL:${CVY_WERROR}>:-Werror> -MD -MF ${simt}.d -I${CMAKE_SOURCE_DIR}/plugins/cuda
              -I${CMAKE_SOURCE_DIR}/tests/fakecuda -I${CMAKE_BINARY_DIR}/cuda -isystem ${CVY_CUDA_INCLUDE}
              ${CMAKE_SOURCE_DIR}/tests/fakecuda/launch_simt.cc -o ${simt}
      COMMENT "launch_device.cu for the host")
    cvy_cuda_target(convoy_fakesimt fakesimt ${simt})
    target_link_libraries(convoy_fakesimt PRIVATE cvy_fakecuda stdc++)
  endif()

  if(CVY_SANITIZE) # of no use on the device, and nvcc takes its time
    return()
  endif()
  find_program(CVY_NVCC nvcc HINTS /usr/local/cuda/bin $ENV{CUDA_HOME}/bin)
  if(NOT CVY_NVCC)
    message(STATUS "Convoy without cuda: there is no nvcc")
    return()
  endif()
  set(code "")
  foreach(architecture ${CVY_CUDA_ARCHITECTURES})
    list(APPEND code -gencode=arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET CVY_CUDA_ARCHITECTURES -1 newest) # later GPUs compile this one when they load it
  list(APPEND code -gencode=arch=compute_${newest},code=compute_${newest})
  set(object ${CMAKE_BINARY_DIR}/cuda/launch_device.o)
  add_custom_command(
    OUTPUT ${object} DEPFILE ${object}.d DEPENDS plugins/cuda/launch_device.cu ${CMAKE_BINARY_DIR}/cuda/functions_all.h
    COMMAND ${CVY_NVCC} -c -O3 -std=c++17 ${code} --threads 2 -Werror all-warnings
            -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Werror -MD -MF ${object}.d
            -I${CMAKE_SOURCE_DIR}/plugins/cuda -I${CMAKE_BINARY_DIR}/cuda
            ${CMAKE_SOURCE_DIR}/plugins/cuda/launch_device.cu -o ${object}
    COMMENT "nvcc launch_device.cu for ${CVY_CUDA_ARCHITECTURES}")
  get_filename_component(root ${CVY_CUDA_INCLUDE} DIRECTORY)
  cvy_cuda_target(convoy_cuda . ${object})
  target_link_libraries(convoy_cuda PRIVATE stdc++)
  foreach(library cudart cudnn cublasLt nccl)
    find_library(CVY_LIB_${library} ${library} HINTS ${root}/lib64 ${root}/lib REQUIRED)
    target_link_libraries(convoy_cuda PRIVATE ${CVY_LIB_${library}})
  endforeach()
  cvy_install_plugin(convoy_cuda)
endfunction()

# cvy_cuda_tests(DIR LIBRARY…): DIR/x.sh and DIR/x_test.c -> cuda.x, with the label cuda; the plugin that they find is the
# one with the stand-in, and where there is none they skip.
function(cvy_cuda_tests dir)
  file(GLOB scripts CONFIGURE_DEPENDS ${dir}/*.sh)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*_test.c)
  set(tests "")
  foreach(script ${scripts})
    get_filename_component(stem ${script} NAME_WE)
    cvy_script_test(cuda.${stem} sh ${script})
    list(APPEND tests cuda.${stem})
  endforeach()
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    string(REGEX REPLACE "_test$" "" stem ${stem})
    cvy_test(cuda.${stem} ${source} ${ARGN})
    list(APPEND tests cuda.${stem})
    if(TARGET convoy_fakecuda)
      add_dependencies(test_cuda_${stem} convoy_fakecuda)
    endif()
  endforeach()
  set_property(TEST ${tests} PROPERTY LABELS cuda)
  set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT "CONVOY_PLUGINS=${CMAKE_BINARY_DIR}/fakecuda")
  if(TARGET convoy_fakesimt) # the kernels a second time, as CUDA code
    add_test(NAME cuda.kernels_simt COMMAND test_cuda_kernels)
    set_tests_properties(cuda.kernels_simt PROPERTIES LABELS cuda TIMEOUT 600 COST 60 ENVIRONMENT
      "${CVY_TEST_ENVIRONMENT};CONVOY_PLUGINS=${CMAKE_BINARY_DIR}/fakesimt")
    add_dependencies(test_cuda_kernels convoy_fakesimt)
  endif()
endfunction()
