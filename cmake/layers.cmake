# A layer is one folder of src/: a static library of its files, and a test program for each x_test.c beside x.c.

# cvy_test(NAME SOURCE LIBRARY…): the cmocka program SOURCE as ctest NAME, run from the source folder.
function(cvy_test name source)
  string(REPLACE "." "_" target test_${name})
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE ${ARGN} PkgConfig::CMOCKA)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  add_test(NAME ${name} COMMAND ${target} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
                       ENVIRONMENT "${CVY_TEST_ENVIRONMENT}")
endfunction()

# cvy_layer(NAME DIR DEPENDENCY…): the library cvy_NAME of DIR/*.c; DIR/x_test.c becomes the test NAME.x, linked
# with this layer and what it depends on. main.c is left to cvy_program.
function(cvy_layer name dir)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.c)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.c$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.c$")
  if(NOT sources)
    add_library(cvy_${name} INTERFACE)
    target_link_libraries(cvy_${name} INTERFACE ${ARGN})
    target_include_directories(cvy_${name} INTERFACE include src)
    return()
  endif()
  add_library(cvy_${name} STATIC ${sources})
  target_link_libraries(cvy_${name} PUBLIC ${ARGN})
  target_include_directories(cvy_${name} PUBLIC include src)
  set_property(GLOBAL APPEND PROPERTY CVY_LAYERS cvy_${name})
  foreach(test ${tests})
    get_filename_component(stem ${test} NAME_WE)
    string(REGEX REPLACE "_test$" "" stem ${stem})
    cvy_test(${name}.${stem} ${test} cvy_${name})
  endforeach()
endfunction()

# libconvoy.so and libconvoy.a from the objects of every layer below the command line, with header and
# pkg-config file. Other libraries are private: users link with -lconvoy alone.
function(cvy_libconvoy)
  get_property(layers GLOBAL PROPERTY CVY_LAYERS)
  list(REMOVE_ITEM layers cvy_cli)
  list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  set(libraries Threads::Threads m gomp ${CMAKE_DL_LIBS} ${DNNL_LIBRARY} PkgConfig::HWLOC PkgConfig::JANSSON PkgConfig::XXHASH
      PkgConfig::JPEG PkgConfig::SPNG PkgConfig::WEBP PkgConfig::ZLIB)
  add_library(libconvoy SHARED ${objects})
  add_library(libconvoy_static STATIC ${objects})
  target_link_libraries(libconvoy PRIVATE ${libraries})
  target_include_directories(libconvoy INTERFACE include)
  if(NOT CVY_SANITIZE) # sanitizers leave their own symbols to the program
    target_link_options(libconvoy PRIVATE -Wl,--no-undefined)
  endif()
  foreach(target libconvoy libconvoy_static)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME convoy
                          VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  endforeach()
  file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  configure_file(convoy.pc.in convoy.pc @ONLY)
  install(TARGETS libconvoy libconvoy_static)
  install(DIRECTORY include/convoy DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${CMAKE_BINARY_DIR}/convoy.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# cvy_program(TARGET MAIN LIBRARY…): the program, from the layers' own objects: it starts without libconvoy.so.
function(cvy_program target main)
  add_executable(${target} ${main})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME convoy)
  install(TARGETS ${target})
  target_link_libraries(${target} PRIVATE ${ARGN})
endfunction()
