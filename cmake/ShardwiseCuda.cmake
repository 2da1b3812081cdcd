# SHARDWISE_CUDA: code for GPUs, auto | on | off. Sets shardwise_cuda_missing, the reasons why there
# is none, empty where it is built; and SHARDWISE_CUDA_INCLUDE, where CUDA's headers are, which tests
# of kernels on the host need alone.
set(SHARDWISE_CUDA auto CACHE STRING "Build the executor's code for GPUs: auto, on or off")
set_property(CACHE SHARDWISE_CUDA PROPERTY STRINGS auto on off)
set(SHARDWISE_CUDA_ARCHITECTURES "80-real;90-real;100-real;120" CACHE STRING
    "GPUs to compile for, as CMAKE_CUDA_ARCHITECTURES; the last has PTX for later ones")
if(NOT SHARDWISE_CUDA MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "SHARDWISE_CUDA=${SHARDWISE_CUDA}: use auto, on or off")
endif()

set(cuda_folders ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda)
find_path(SHARDWISE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${cuda_folders} PATH_SUFFIXES include)
find_program(SHARDWISE_NVCC nvcc HINTS ${cuda_folders} PATH_SUFFIXES bin)
mark_as_advanced(SHARDWISE_CUDA_INCLUDE SHARDWISE_NVCC)

set(oldest_cuda 12.8)  # the first that compiles for sm_120
set(shardwise_cuda_missing)
if(SHARDWISE_CUDA STREQUAL "off")
  list(APPEND shardwise_cuda_missing "SHARDWISE_CUDA=off")
elseif(NOT SHARDWISE_NVCC)
  list(APPEND shardwise_cuda_missing "no nvcc (CUDA toolkit ${oldest_cuda} or later)")
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR SHARDWISE_SANITIZE)
  list(APPEND shardwise_cuda_missing "nvcc is used with g++ and without sanitizers")
else()
  execute_process(COMMAND ${SHARDWISE_NVCC} --version OUTPUT_VARIABLE said ERROR_QUIET)
  if(NOT said MATCHES "release ([0-9.]+)")
    list(APPEND shardwise_cuda_missing "${SHARDWISE_NVCC} does not say its version")
  elseif(CMAKE_MATCH_1 VERSION_LESS oldest_cuda)
    list(APPEND shardwise_cuda_missing "nvcc is CUDA ${CMAKE_MATCH_1}, ${oldest_cuda} is needed")
  endif()
endif()

list(JOIN shardwise_cuda_missing ", " why)
if(NOT shardwise_cuda_missing)
  set(CMAKE_CUDA_COMPILER ${SHARDWISE_NVCC})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  set(CMAKE_CUDA_ARCHITECTURES ${SHARDWISE_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  message(STATUS "executor: kernels of GPUs by CUDA ${CMAKE_CUDA_COMPILER_VERSION} for "
                 "${SHARDWISE_CUDA_ARCHITECTURES} (SHARDWISE_CUDA=${SHARDWISE_CUDA})")
elseif(SHARDWISE_CUDA STREQUAL "on")
  message(FATAL_ERROR "executor: no kernels of GPUs, ${why} (SHARDWISE_CUDA=on)")
else()
  message(STATUS "executor: no kernels of GPUs, ${why} (SHARDWISE_CUDA=${SHARDWISE_CUDA})")
endif()
