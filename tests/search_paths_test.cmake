# search_paths.cmake passes good search paths and names each kind of violation. COMPILER: links them.
# SCRATCH: a folder of this test.
cmake_minimum_required(VERSION 3.25)

# Links a library with one search path and runs search_paths.cmake on it. An empty `expected` means
# it passes.
function(expect tag search_path expected)
  file(REMOVE_RECURSE ${SCRATCH})
  file(MAKE_DIRECTORY ${SCRATCH}/sub)
  file(WRITE ${SCRATCH}/empty.cc "")
  execute_process(COMMAND ${COMPILER} -shared -fPIC ${SCRATCH}/empty.cc -o ${SCRATCH}/sub/libx.so
                          -Wl,--${tag}-new-dtags "-Wl,-rpath,${search_path}"
                  RESULT_VARIABLE result ERROR_VARIABLE error)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${search_path}: ${error}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH}/sub
                          -P ${CMAKE_CURRENT_LIST_DIR}/search_paths.cmake
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE error)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")  # CMake breaks lines where a path is long
  string(FIND "${error}" "${expected}" at)
  if(expected STREQUAL "" AND NOT result EQUAL 0)
    message(SEND_ERROR "${search_path} should pass, said: ${error}")
  elseif(NOT expected STREQUAL "" AND (result EQUAL 0 OR at EQUAL -1))
    message(SEND_ERROR "${search_path} should say '${expected}', said: ${error}")
  endif()
endfunction()

foreach(tag enable disable)
  expect(${tag} "/usr/lib/a" "")
  expect(${tag} "/usr/lib/a:/opt/b" "")
  expect(${tag} "/usr/lib/a:" "an empty element")
  expect(${tag} ":/usr/lib/a" "an empty element")
  expect(${tag} "/usr/lib/a::/opt/b" "an empty element")
  expect(${tag} "lib" "a relative element")
  expect(${tag} "/usr/lib/a:./lib" "a relative element")
endforeach()

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH}/sub)
execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH}/sub
                        -P ${CMAKE_CURRENT_LIST_DIR}/search_paths.cmake
                RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result EQUAL 0)
  message(SEND_ERROR "a folder without programs should not pass")
endif()
file(REMOVE_RECURSE ${SCRATCH})
