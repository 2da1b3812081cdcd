# SHARDWISE_STATIC: programs to carry to machines that have none of the packages they were built
# with. They need the C library, of the building machine's version or later, and for GPUs NVIDIA's
# driver and libraries, which are looked for at run time.
option(SHARDWISE_STATIC "Link every library but the C library and NVIDIA's into the programs" OFF)
if(NOT SHARDWISE_STATIC)
  return()
endif()

# Archives come first; scripts/cluster.sh refuses programs that still need a shared library.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
# Debian has no archive of fmt: its headers have all of it, and what nobody calls is not linked.
target_compile_definitions(shardwise_build INTERFACE FMT_HEADER_ONLY)
target_link_options(shardwise_build INTERFACE
  LINKER:--as-needed LINKER:--strip-all -static-libgcc -static-libstdc++)

# shardwise_whole_runtime(program): puts all of the C++ runtime into a program, for the libraries
# that it opens.
function(shardwise_whole_runtime program)
  target_link_options(${program} PRIVATE
    LINKER:--whole-archive -l:libstdc++.a LINKER:--no-whole-archive)
endfunction()

# shardwise_runtime_of_program(library): the C++ runtime of a library that a program opens is the
# program's, so that both have one.
function(shardwise_runtime_of_program library)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_options(${library} PRIVATE -nodefaultlibs)
  target_link_libraries(${library} PRIVATE m c gcc)
endfunction()
