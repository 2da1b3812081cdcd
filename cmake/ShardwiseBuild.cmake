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
# Sources of tests are optimised in preset release alone. That takes a third off the time to compile
# them in preset dev, and half under sanitizers. Tests spend their own time in the libraries.
set(shardwise_test_options)
if(SHARDWISE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(shardwise_test_options -O0)
endif()
if(SHARDWISE_FUZZ)
  target_compile_options(shardwise_build INTERFACE -fsanitize=fuzzer-no-link)
endif()

# A program has the same search path where it is built and where it is installed: the folders of the
# libraries it was linked with. CMake would otherwise end the built one with an empty element, to
# have room for another, and the loader takes that for the current folder.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

set(SHARDWISE_GROUP 16 CACHE STRING "Sources of a room that are compiled together; 1 compiles each alone")
# GCC warns of types of an unnamed namespace in every file but the one it is given.
if(SHARDWISE_GROUP GREATER 1 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(shardwise_build INTERFACE -Wno-subobject-linkage)
endif()

# One cache serves every checkout of the repository on a machine (ccache.sh says how).
find_program(SHARDWISE_CCACHE ccache)
function(shardwise_use_ccache target)
  if(SHARDWISE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(launcher "${PROJECT_SOURCE_DIR}/cmake/ccache.sh;${PROJECT_SOURCE_DIR}")
    set_target_properties(${target} PROPERTIES
      CXX_COMPILER_LAUNCHER "${launcher}"
      CUDA_COMPILER_LAUNCHER "${launcher}")
  endif()
endfunction()

# Headers that most files include, compiled once: builds by clang, which are those under sanitizers,
# take two thirds of the time. GCC gains nothing, and its builds find a file that lacks an include.
# A target with flags of its own for numbers sets DISABLE_PRECOMPILE_HEADERS.
option(SHARDWISE_PCH "Precompile common headers (clang only)" ON)
set(shardwise_common_headers
  <algorithm> <array> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <map>
  <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <string_view>
  <thread> <unordered_map> <utility> <vector> <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)

# shardwise_headers(name DEPENDS library… HEADERS header… [OPTIONS flag…]): what
# shardwise_reuse_headers names. OPTIONS are those of the targets that reuse them.
function(shardwise_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;HEADERS;OPTIONS")
  if(NOT SHARDWISE_PCH OR NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/headers.cc)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE ${arg_OPTIONS}
    "SHELL:-Xclang -fno-pch-timestamp")  # for ccache
  target_link_libraries(${name} PRIVATE shardwise_build ${arg_DEPENDS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  shardwise_use_ccache(${name})
endfunction()

# shardwise_reuse_headers(target [name])
function(shardwise_reuse_headers target)
  if(ARGN AND TARGET ${ARGN})
    target_precompile_headers(${target} REUSE_FROM ${ARGN})
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
