# repository.cmake passes good trees and names each kind of violation.
cmake_minimum_required(VERSION 3.25)

# Writes one file beside twenty good ones and runs repository.cmake on them, as if there were no git.
# An empty `expected` means it passes.
function(expect path text expected)
  file(REMOVE_RECURSE ${SCRATCH})
  foreach(i RANGE 20)
    file(WRITE ${SCRATCH}/good/${i}.txt "good\n")
  endforeach()
  file(WRITE ${SCRATCH}/${path} "${text}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_DIR=${SCRATCH}/none
                          ${CMAKE_COMMAND} -D ROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/repository.cmake
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE error)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")
  string(FIND "${error}" "${expected}" at)
  if(expected STREQUAL "" AND NOT result EQUAL 0)
    message(SEND_ERROR "${path} should pass, said: ${error}")
  elseif(NOT expected STREQUAL "" AND (result EQUAL 0 OR at EQUAL -1))
    message(SEND_ERROR "${path} should say '${expected}', said: ${error}")
  endif()
endfunction()

string(REPEAT "line\n" 400 longest)
string(REPEAT "0123456789abcdef" 65537 huge)
set(slash /)

expect(a.cc "${longest}" "")
expect(a.cc "${longest}one more\n" "a file has 400 at most")
expect(a.md "see docs${slash}home/index.md and https:${slash}/x.org${slash}work/a\n" "")
expect(a.md "in ${slash}home/somebody/b\n" "a path of one machine, ${slash}home/somebody")
expect(a.sh "cd ${slash}work/x\n" "a path of one machine, ${slash}work/x")
expect(a.md "tail \n" "white space at the end of a line")
expect(a.md "no end" "the last line has no end")
expect(a.cc "// TODO later\n" "name an issue")
expect(a.cc "// TODO(#12): when there is a reader\n" "")
expect(a.bin "${huge}\n" "no file here needs more than a MiB")
