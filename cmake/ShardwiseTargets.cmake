# One function per kind of target. Every list is explicit; includes are rooted at the repository root.

# _shardwise_common(target [precompiled headers])
function(_shardwise_common target)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  shardwise_use_ccache(${target})
  shardwise_reuse_headers(${target} ${ARGV1})
endfunction()

# _shardwise_groups(result target source…)
# Sources of a target that are compiled together, SHARDWISE_GROUP of them in one: four fifths of what
# a source takes are its headers. Names that are local to a source are therefore unique in a folder
# (tests/local_names.py). CMake's UNITY_BUILD names sources by absolute paths, so that no checkout
# would find in the compiler cache what another one made.
function(_shardwise_groups result target)
  set(alone)
  set(together)
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${path} inside)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${path} made)
    if(source MATCHES "\\.cc$" AND inside AND NOT made)
      list(APPEND together ${path})
    else()
      list(APPEND alone ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  math(EXPR groups "(${count} + ${SHARDWISE_GROUP} - 1) / ${SHARDWISE_GROUP}")
  if(groups GREATER_EQUAL count)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(begin 0)
  foreach(group RANGE 1 ${groups})
    math(EXPR end "${count} * ${group} / ${groups}")
    math(EXPR length "${end} - ${begin}")
    list(SUBLIST together ${begin} ${length} sources)
    set(text)
    foreach(path ${sources})
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_${group}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND alone ${file})
    set(begin ${end})
  endforeach()
  set(${result} ${alone} PARENT_SCOPE)
endfunction()

# shardwise_library(name [SOURCES a.cc…] [ALONE b.cc…] [DEPENDS library…])
# A room or sub-room. Without sources it is a library of headers. ALONE: sources with properties of
# their own, which no other shares.
function(shardwise_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;ALONE;DEPENDS")
  if(arg_SOURCES OR arg_ALONE)
    _shardwise_groups(sources ${name} ${arg_SOURCES})
    add_library(${name} STATIC ${sources} ${arg_ALONE})
    target_link_libraries(${name} PUBLIC shardwise_build ${arg_DEPENDS})
    _shardwise_common(${name} shardwise_headers)
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE shardwise_build ${arg_DEPENDS})
  endif()
endfunction()

# shardwise_position_independent(target…): libraries that go into a shared one. Their code differs
# from what the precompiled headers were compiled as.
function(shardwise_position_independent)
  set_target_properties(${ARGN} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    DISABLE_PRECOMPILE_HEADERS ON)
endfunction()

# shardwise_executable(name SOURCES a.cc… [DEPENDS library…])
# A program people run; it is installed.
function(shardwise_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE shardwise_build ${arg_DEPENDS})
  _shardwise_common(${name} shardwise_headers)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# _shardwise_libraries_of(result target…)
# The static libraries of the project, without those of tests, that targets are linked with.
function(_shardwise_libraries_of result)
  set(found)
  foreach(target ${ARGN})
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" target "${target}")
    if(NOT TARGET ${target})
      continue()
    endif()
    get_property(known GLOBAL PROPERTY shardwise_libraries_of_${target} SET)
    if(NOT known)
      get_target_property(kind ${target} TYPE)
      get_target_property(imported ${target} IMPORTED)
      get_target_property(source_dir ${target} SOURCE_DIR)
      get_target_property(others ${target} INTERFACE_LINK_LIBRARIES)
      set(own)
      if(kind STREQUAL "STATIC_LIBRARY" AND NOT imported AND NOT source_dir MATCHES "^${PROJECT_SOURCE_DIR}/tests")
        set(own ${target})
      endif()
      set(below)
      if(others AND NOT imported)
        _shardwise_libraries_of(below ${others})
      endif()
      set_property(GLOBAL PROPERTY shardwise_libraries_of_${target} ${own} ${below})
    endif()
    get_property(known GLOBAL PROPERTY shardwise_libraries_of_${target})
    list(APPEND found ${known})
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# shardwise_libraries_first(target): links the whole of the project's libraries before the sources of
# a test. Of a template or an inline function that both have, the linker keeps the first, and sources of
# tests are not optimised: behind them the libraries would run the standard library, CLI11 and the JSON
# parser as slowly as a debug build. After all targets are there.
function(shardwise_libraries_first target)
  get_target_property(linked ${target} LINK_LIBRARIES)
  _shardwise_libraries_of(libraries ${linked})
  if(libraries)
    list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>")
    list(JOIN libraries " " files)
    target_link_options(${target} BEFORE PRIVATE
      "SHELL:LINKER:--whole-archive ${files} LINKER:--no-whole-archive")
  endif()
endfunction()

# shardwise_test(name SOURCES a_test.cc… [DEPENDS library…] [LABELS label…] [THREADED suite…]
#                [OPTIMISED])
# A GoogleTest program; ctest lists each of its tests, but under sanitizers, where a process for each
# takes longer than the test, the program. Tests run in the repository root, so
# "configs/models/gpt2.json" is a good path. Without sources there is nothing to build.
# Label `threads` has the thread sanitizer watch it (preset tsan), `bytes` has the address sanitizer
# watch it in `.ci/run`: it reads what may be hostile, or places what it writes by hand. `processes`:
# it starts ranks, processes or windows, so that scripts/test.sh tries it twice. `gpu` says that it
# skips without one.
# THREADED: the suites that start threads, where others of the program take long; the thread
# sanitizer watches those alone. OPTIMISED: its own code takes long, so that it is optimised under
# sanitizers too.
function(shardwise_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED" "" "SOURCES;DEPENDS;LABELS;THREADED")
  if(NOT arg_SOURCES)
    return()
  endif()
  _shardwise_groups(sources ${name} ${arg_SOURCES})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE shardwise_build ${arg_DEPENDS} GTest::gmock GTest::gtest_main)
  if(arg_OPTIMISED)
    _shardwise_common(${name} shardwise_headers)
  else()
    target_compile_options(${name} PRIVATE ${shardwise_test_options})
    _shardwise_common(${name} shardwise_test_headers)
    if(shardwise_test_options)
      cmake_language(EVAL CODE
        "cmake_language(DEFER DIRECTORY [[${PROJECT_SOURCE_DIR}]] CALL shardwise_libraries_first [[${name}]])")
    endif()
  endif()
  foreach(group threads bytes)
    if(group IN_LIST arg_LABELS)
      add_dependencies(${group} ${name})
    endif()
  endforeach()
  if(SHARDWISE_SANITIZE)
    set(which)
    if(arg_THREADED AND SHARDWISE_SANITIZE STREQUAL "thread")
      list(JOIN arg_THREADED ":" suites)
      set(which --gtest_filter=${suites})
    endif()
    add_test(NAME ${name} COMMAND ${name} ${which} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1800 LABELS "${arg_LABELS}")
    return()
  endif()
  gtest_discover_tests(${name}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DISCOVERY_TIMEOUT 60
    NO_PRETTY_VALUES
    PROPERTIES TIMEOUT 900 LABELS "${arg_LABELS}")
endfunction()

# shardwise_benchmark(name SOURCES a_bench.cc… [DEPENDS library…] [CTEST_OMITS regex])
# A google-benchmark program; ctest runs each of its benchmarks for a moment so that it cannot rot,
# but those that take minutes even so and whose code others run.
function(shardwise_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CTEST_OMITS" "SOURCES;DEPENDS")
  if(NOT SHARDWISE_BENCHMARKS OR NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE shardwise_build ${arg_DEPENDS} benchmark::benchmark_main)
  _shardwise_common(${name} shardwise_headers)
  set(which)
  if(arg_CTEST_OMITS)
    set(which --benchmark_filter=-${arg_CTEST_OMITS})
  endif()
  add_test(NAME ${name} COMMAND ${name} --benchmark_min_time=0.001 ${which}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS bench)
endfunction()

# shardwise_fuzzer(name [MUTATES_JSON] SOURCES a_fuzz.cc… [DEPENDS library…] CORPUS folder…)
# CORPUS folders are relative to the repository root, where the fuzzer runs. MUTATES_JSON changes
# inputs so that most of them stay JSON.
# With SHARDWISE_FUZZ: a libFuzzer program, run by ctest for SHARDWISE_FUZZ_SECONDS.
# Without: the same entry point fed with every file of the corpus, so that each build replays it.
function(shardwise_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MUTATES_JSON" "" "SOURCES;DEPENDS;CORPUS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE shardwise_build ${arg_DEPENDS})
  _shardwise_common(${name} shardwise_headers)
  add_dependencies(fuzzers ${name})
  if(SHARDWISE_FUZZ)
    set(SHARDWISE_FUZZ_SECONDS 10 CACHE STRING "Seconds ctest gives each fuzzer")
    set(SHARDWISE_FUZZ_SEED 0 CACHE STRING "Of the fuzzers' inputs: 0 gives others each time")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    if(arg_MUTATES_JSON)
      target_link_libraries(${name} PRIVATE json_mutator)
    endif()
    set(found ${PROJECT_BINARY_DIR}/fuzz/${name})
    file(MAKE_DIRECTORY ${found})
    # New inputs go to the first folder; the corpus is only read.
    add_test(NAME ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
             COMMAND ${name} -max_total_time=${SHARDWISE_FUZZ_SECONDS} -seed=${SHARDWISE_FUZZ_SEED} -timeout=10
                     -max_len=65536 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=${found}/ ${found} ${arg_CORPUS})
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cc)
    add_test(NAME ${name} COMMAND ${name} ${arg_CORPUS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS fuzz)
endfunction()
