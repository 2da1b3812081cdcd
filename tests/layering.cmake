# Which room may include which. Run by ctest: cmake -D ROOT=<repository> -P tests/layering.cmake
cmake_minimum_required(VERSION 3.25)

set(planner_may planner)
set(simulator_may planner simulator)
set(executor_may planner executor)
set(gui_may planner simulator gui)
set(cli_may planner simulator cli)

# Inside the planner: export -> question -> score -> search -> lowering -> cost, engines, model -> spec.
set(planner_spec_may spec)
set(planner_files_may spec files)
set(planner_recorded_may spec recorded)
set(planner_model_may spec model)
set(planner_cost_may spec cost)
set(planner_engines_may spec engines)
set(planner_lowering_may spec model cost engines lowering)
set(planner_search_may spec model cost engines lowering search)
set(planner_question_may spec model cost engines lowering search score question)
set(planner_score_may spec model cost engines lowering search score)
set(planner_export_may spec model cost engines lowering search question export)

# The planner and the simulator are pure: no clock, no console, no files besides the reader and the file it opens, and
# besides the last words of a failed check.
set(impure "^#include <(chrono|ctime|time\\.h|iostream|fstream|cstdio|stdio\\.h|unistd\\.h|fcntl\\.h|sys/.*)>")
set(may_be_impure planner/spec/json/reader planner/spec/json/regular_file planner/spec/text/check planner/spec/json/catalogue planner/model/hub_cache
    simulator/traces/trace_file)
# Naming a file by its path is no I/O: readers and the catalogue do so, nobody else.
set(may_name_files "^planner/(spec/([a-z]+_reader|reader|regular_file|catalogue|csv_file|plan|report_json)|model/(hf_config|hub_cache)|export/framework_reader)$")
# What these words do, they do whatever header brought them. The catalogue and the cache of the Hub look names up in
# folders, and read how a file begins.
set(impure_words "(std::(cout|cerr|getenv|fopen|ifstream|ofstream|fstream)|(steady|system)_clock|sleep_(for|until)|directory_iterator|is_regular_file|is_directory|create_director|remove_all)")
set(may_use_words planner/spec/json/reader planner/spec/text/check planner/spec/json/catalogue planner/model/hub_cache
    simulator/traces/trace_file)
# One answer for any number of threads is the search's to keep: the rest of the planner has none, but
# for the orders of slots that the search's threads share.
set(threads "^#include <(thread|mutex|shared_mutex|atomic|future|condition_variable|semaphore|barrier|latch)>")
set(may_have_threads planner/search/best_first planner/search/best_rows planner/search/explore planner/search/finder
    planner/search/search planner/search/search_memory planner/search/search_threads
    planner/schedule/kept_slots)

# The viewer: what it shows is computed without ImGui, and what draws computes nothing. Panels may
# know words and units.
set(draws "^#include <(imgui|implot|imgui_internal|imgui_impl_[a-z0-9]+|GLFW/.*)(\\.h)?>")
set(panels_may "^#include \"(gui/|planner/spec/|simulator/(palette|timeline_ticks)\\.h)")

# Headers stay light: these are for sources.
set(heavy "^#include [<\"](nlohmann/|CLI/|Eigen/|Eigen>)")

# The edge of the programs, for cli and executor: what files and streams do to what is written.
set(edge "^planner/files/")

foreach(room planner simulator executor gui cli)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${room}/*.h ${ROOT}/${room}/*.cc ${ROOT}/${room}/*.cu)
  foreach(file ${files})
    file(STRINGS ${ROOT}/${file} lines REGEX "^#include ")
    string(REGEX REPLACE "\\.(h|cc|cu)$" "" stem ${file})
    string(REGEX MATCH "^planner/([a-z]+)/" _ ${file})
    set(sub_room "${CMAKE_MATCH_1}")
    if(room MATCHES "^(planner|simulator)$" AND NOT stem IN_LIST may_use_words
       AND NOT stem MATCHES "${edge}")
      file(STRINGS ${ROOT}/${file} words REGEX "${impure_words}")
      foreach(line ${words})
        message(SEND_ERROR "${file}: ${room} is pure: ${line}")
      endforeach()
    endif()
    foreach(line ${lines})
      if(line MATCHES "^#include \"([a-z]+)/([a-z_]+)")
        set(their_room ${CMAKE_MATCH_1})
        set(their_sub_room ${CMAKE_MATCH_2})
        if(NOT their_room IN_LIST ${room}_may)
          message(SEND_ERROR "${file}: ${room} may not include ${their_room}: ${line}")
        elseif(room STREQUAL planner AND NOT their_sub_room IN_LIST planner_${sub_room}_may)
          message(SEND_ERROR
            "${file}: planner/${sub_room} may not include planner/${their_sub_room}: ${line}")
        endif()
      elseif(line MATCHES "^#include \"")
        message(SEND_ERROR "${file}: includes start at the repository root: ${line}")
      elseif(room MATCHES "^(planner|simulator)$" AND line MATCHES "${impure}"
             AND NOT stem IN_LIST may_be_impure AND NOT stem MATCHES "${edge}")
        message(SEND_ERROR "${file}: ${room} is pure: ${line}")
      elseif(room STREQUAL planner AND line MATCHES "^#include <filesystem>"
             AND NOT stem MATCHES "${may_name_files}" AND NOT stem MATCHES "${edge}")
        message(SEND_ERROR "${file}: only readers and the catalogue name files: ${line}")
      elseif(room STREQUAL planner AND line MATCHES "${threads}" AND NOT stem IN_LIST may_have_threads
             AND NOT stem MATCHES "${edge}")
        message(SEND_ERROR "${file}: only the search has threads: ${line}")
      endif()
      if(file MATCHES "^gui/models/" AND (line MATCHES "${draws}" OR line MATCHES "\"gui/(draw|panels|app)/"))
        message(SEND_ERROR "${file}: view models know nothing of drawing: ${line}")
      elseif(file MATCHES "^gui/panels/" AND line MATCHES "^#include \"" AND NOT line MATCHES "${panels_may}")
        message(SEND_ERROR "${file}: panels draw what a view model holds: ${line}")
      endif()
      if(room MATCHES "^(planner|simulator)$" AND line MATCHES "\"planner/files/" AND NOT stem MATCHES "${edge}")
        message(SEND_ERROR "${file}: ${room} writes no files: ${line}")
      endif()
      if(file MATCHES "\\.h$" AND line MATCHES "${heavy}")
        message(SEND_ERROR "${file}: headers stay light, include it in the source: ${line}")
      endif()
    endforeach()
  endforeach()
endforeach()
