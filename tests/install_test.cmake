# Installs the build, moves the prefix, and runs the programs from another folder: they find the
# catalogue that was installed with them. BUILD: the build folder. SCRATCH: a folder of this test.
# COMPILER: of C++.
file(REMOVE_RECURSE ${SCRATCH})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/first
  RESULT_VARIABLE failed OUTPUT_QUIET)
if(failed)
  message(FATAL_ERROR "cmake --install ends with ${failed}")
endif()
set(prefix ${SCRATCH}/moved)
file(RENAME ${SCRATCH}/first ${prefix})

foreach(file bin/shardwise share/man/man1/shardwise.1 share/shardwise/configs/models/gpt2.json
        share/bash-completion/completions/shardwise share/zsh/site-functions/_shardwise
        share/fish/vendor_completions.d/shardwise.fish ${PROGRAMS})
  if(NOT EXISTS ${prefix}/${file})
    message(SEND_ERROR "${file} is not installed")
    continue()
  endif()
  file(SIZE ${prefix}/${file} bytes)
  if(bytes EQUAL 0)
    message(SEND_ERROR "${file} is empty")
  endif()
endforeach()

execute_process(
  COMMAND ${CMAKE_COMMAND} -D ROOT=${prefix} -P ${CMAKE_CURRENT_LIST_DIR}/search_paths.cmake
  RESULT_VARIABLE failed OUTPUT_QUIET)
if(failed)
  message(SEND_ERROR "a search path of what is installed is refused")
endif()

execute_process(
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/planted_test.sh ${prefix}/bin ${SCRATCH}/planted ${COMPILER}
  RESULT_VARIABLE failed OUTPUT_VARIABLE said)
if(failed)
  message(SEND_ERROR "what a stranger plants beside what is installed: ${said}")
endif()

# A model that the source tree does not have.
file(COPY_FILE ${prefix}/share/shardwise/configs/models/gpt2.json
  ${prefix}/share/shardwise/configs/models/installed-alone.json)
execute_process(
  COMMAND ${prefix}/bin/shardwise estimate --model installed-alone --cluster dgx-h100
  WORKING_DIRECTORY ${prefix} RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE wrong)
if(NOT code EQUAL 0 OR NOT said MATCHES "installed-alone, 124 M parameters")
  message(SEND_ERROR "the moved shardwise ends with ${code}: ${said}${wrong}")
endif()
file(REMOVE_RECURSE ${SCRATCH})
