# Tests that span layers. Each helper globs a folder, so a new test is one new file.

# cvy_suites(DIR LIBRARY…): DIR/x_test.c -> suite.x, with the library's internals.
function(cvy_suites dir)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*_test.c)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    string(REGEX REPLACE "_test$" "" stem ${stem})
    cvy_test(suite.${stem} ${source} ${ARGN})
  endforeach()
endfunction()

# cvy_examples(DIR): DIR/x.c -> example.x, built as a user would: the public header and libconvoy.so.
function(cvy_examples dir)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.c)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    add_executable(example_${stem} ${source})
    target_link_libraries(example_${stem} PRIVATE libconvoy)
    cvy_script_test(example.${stem} $<TARGET_FILE:example_${stem}>)
  endforeach()
endfunction()

# cvy_fuzzers(DIR LIBRARY…): DIR/x_fuzz.c -> fuzz.x over the committed files of DIR/corpus/x: each file once; with
# CVY_FUZZ libFuzzer goes on from there for CVY_FUZZ_SECONDS, thrice that for those of CVY_FUZZ_LONG, and keeps what it
# finds in the build folder.
# The target `fuzzers` builds them all.
function(cvy_fuzzers dir)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*_fuzz.c)
  add_custom_target(fuzzers)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" stem ${stem})
    set(target fuzz_${stem})
    set(corpus ${CMAKE_SOURCE_DIR}/${dir}/corpus/${stem})
    if(CVY_FUZZ)
      add_executable(${target} ${source})
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
      set(found ${CMAKE_BINARY_DIR}/fuzz/${stem})
      file(MAKE_DIRECTORY ${found})
      set(seconds ${CVY_FUZZ_SECONDS})
      if(stem IN_LIST CVY_FUZZ_LONG)
        math(EXPR seconds "3 * ${seconds}")
      endif()
      set(arguments -max_total_time=${seconds} -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
          -artifact_prefix=${found}- ${found} ${corpus})
    else()
      add_executable(${target} ${source} ${dir}/replay.c)
      set(arguments ${corpus})
    endif()
    target_link_libraries(${target} PRIVATE ${ARGN})
    add_dependencies(fuzzers ${target})
    add_test(NAME fuzz.${stem} COMMAND ${target} ${arguments})
    set_tests_properties(fuzz.${stem} PROPERTIES TIMEOUT 600 ENVIRONMENT "${CVY_TEST_ENVIRONMENT}")
  endforeach()
endfunction()

# cvy_script_test(NAME COMMAND…): COMMAND in a fresh folder, with CONVOY = the program, SOURCE = the source folder,
# BUILD = the build folder, CC = the compiler and SANITIZE = the sanitizers built in, if any. Exit code 77 skips.
function(cvy_script_test name)
  add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/in_fresh_folder ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77 ENVIRONMENT
    "${CVY_TEST_ENVIRONMENT};CONVOY=${CMAKE_BINARY_DIR}/convoy;SOURCE=${CMAKE_SOURCE_DIR};\
BUILD=${CMAKE_BINARY_DIR};CC=${CMAKE_C_COMPILER};SANITIZE=${CVY_SANITIZE}")
endfunction()

# cvy_scripts(DIR PREFIX): DIR/x.sh -> PREFIX.x.
function(cvy_scripts dir prefix)
  file(GLOB scripts CONFIGURE_DEPENDS ${dir}/*.sh)
  foreach(script ${scripts})
    get_filename_component(stem ${script} NAME_WE)
    cvy_script_test(${prefix}.${stem} sh ${script})
  endforeach()
endfunction()

# cvy_docs(FILE|FOLDER…): every page that holds commands marked for testing -> docs.page.
function(cvy_docs)
  foreach(place ${ARGN})
    if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/${place})
      file(GLOB pages CONFIGURE_DEPENDS ${place}/*.md)
    else()
      file(GLOB pages CONFIGURE_DEPENDS ${place})
    endif()
    foreach(page ${pages})
      file(STRINGS ${page} marks REGEX "^<!-- test -->$")
      if(marks)
        get_filename_component(stem ${page} NAME_WE)
        string(TOLOWER ${stem} stem)
        cvy_script_test(docs.${stem} ${CMAKE_SOURCE_DIR}/tests/docs/run_page ${page})
        file(STRINGS ${page} files REGEX "^<!-- file ")
        if(files) # it builds all: begun last, it would keep one core waiting
          set_tests_properties(docs.${stem} PROPERTIES COST 100)
        endif()
      endif()
    endforeach()
  endforeach()
endfunction()

# cvy_benches(DIR LIBRARY…): DIR/x.c -> the program bench_x.
function(cvy_benches dir)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.c)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    add_executable(bench_${stem} ${source})
    target_link_libraries(bench_${stem} PRIVATE ${ARGN})
  endforeach()
endfunction()

# cvy_mpirun_test(NAME TARGET LIBRARY N VARIABLE…): TARGET, a test program, as N processes of mpirun.LIBRARY.
function(cvy_mpirun_test name target library n)
  add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/with_mpirun ${library} ${n} $<TARGET_FILE:${target}>
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77 PROCESSORS 2
    ENVIRONMENT "${CVY_TEST_ENVIRONMENT};SANITIZE=${CVY_SANITIZE};BUILD=${CMAKE_BINARY_DIR};${ARGN}")
  if(TARGET convoy_mpi_${library})
    add_dependencies(${target} convoy_mpi_${library})
  endif()
endfunction()

# cvy_mpirun_tests(NAME TARGET N…): the same under each MPI library -> NAME_openmpi_N, NAME_mpich_N; and once as if the
# processes were on several machines -> NAME_openmpi_far, NAME_mpich_far. Skipped where a library is missing.
function(cvy_mpirun_tests name target)
  foreach(library openmpi mpich)
    foreach(n ${ARGN})
      cvy_mpirun_test(${name}_${library}_${n} ${target} ${library} ${n})
    endforeach()
    cvy_mpirun_test(${name}_${library}_far ${target} ${library} 3 CONVOY_NO_SHARED_MEMORY=1)
  endforeach()
endfunction()
