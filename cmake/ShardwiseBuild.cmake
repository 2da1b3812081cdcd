# shardwise_build: the language, warnings and sanitizers every target of the project is compiled with.

add_library(shardwise_build INTERFACE)
target_compile_features(shardwise_build INTERFACE cxx_std_20)
target_include_directories(shardwise_build INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(shardwise_build INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
  # Paths in binaries, messages and debug information start at the repository root.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# GCC 12 warns of impossible overflows inside std::string and fmt at -O3 (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(shardwise_build INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()

if(SHARDWISE_SANITIZE)
  set(flags -fsanitize=${SHARDWISE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(shardwise_build INTERFACE ${flags})
  target_link_options(shardwise_build INTERFACE ${flags})
endif()
if(SHARDWISE_FUZZ)
  target_compile_options(shardwise_build INTERFACE -fsanitize=fuzzer-no-link)
endif()

# One cache serves every checkout of the repository on a machine: paths are hashed relative to the root.
find_program(SHARDWISE_CCACHE ccache)
function(shardwise_use_ccache target)
  if(SHARDWISE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(launcher "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};CCACHE_NOHASHDIR=1;${SHARDWISE_CCACHE}")
    set_target_properties(${target} PROPERTIES
      CXX_COMPILER_LAUNCHER "${launcher}"
      CUDA_COMPILER_LAUNCHER "${launcher}")
  endif()
endfunction()
