# Plugins: libraries libconvoy_X.so, loaded at run time, each only where what it needs is there.

# cvy_mpi_plugin(NAME COMPILER OPTION): plugins/mpi/mpi.c for the MPI library whose compiler wrapper is COMPILER and
# prints its command with OPTION: the target convoy_NAME, if there is such a library.
function(cvy_mpi_plugin name compiler option)
  string(TOUPPER CVY_${name}_COMPILER variable)
  find_program(${variable} ${compiler} DOC "the compiler wrapper of ${name}")
  if(NOT ${variable})
    message(STATUS "Convoy without ${name}: there is no ${compiler}")
    return()
  endif()
  execute_process(COMMAND ${${variable}} ${option} OUTPUT_VARIABLE command RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(WARNING "Convoy without ${name}: '${${variable}} ${option}' failed")
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${command}")
  set(includes ${words})
  list(FILTER includes INCLUDE REGEX "^-I")
  list(TRANSFORM includes REPLACE "^-I" "")
  set(links ${words})
  list(FILTER links INCLUDE REGEX "^-[Ll]")

  set(target convoy_${name})
  add_library(${target} MODULE plugins/mpi/mpi.c)
  target_include_directories(${target} PRIVATE include)
  target_include_directories(${target} SYSTEM PRIVATE ${includes})
  target_link_libraries(${target} PRIVATE ${links})
  cvy_install_plugin(${target})
endfunction()

# What `make build` builds and `make install` installs beside the program and the libraries.
function(cvy_install_plugin target)
  install(TARGETS ${target} DESTINATION ${CMAKE_INSTALL_LIBDIR}/convoy)
  set_property(GLOBAL APPEND PROPERTY CVY_PLUGINS ${target})
endfunction()

# The target `product`: all that is installed. After all plugins.
function(cvy_product)
  get_property(plugins GLOBAL PROPERTY CVY_PLUGINS)
  add_custom_target(product DEPENDS convoy_program libconvoy libconvoy_static ${plugins})
endfunction()

# Where src/rt/plugin.c looks, as seen from libconvoy.so and from the program.
file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_source_files_properties(src/rt/plugin.c PROPERTIES COMPILE_DEFINITIONS
  "CVY_PLUGIN_FOLDER=\"/convoy\";CVY_PLUGIN_FOLDER_BIN=\"/${to_libraries}/convoy\"")
