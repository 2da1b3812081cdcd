# Which room may include which. Run by ctest: cmake -D ROOT=<repository> -P tests/layering.cmake
cmake_minimum_required(VERSION 3.25)

# Of the six rooms on the ground floor.
set(planner_may planner)
set(simulator_may planner simulator)
set(answers_may planner simulator answers)
set(executor_may planner executor)
set(gui_may planner simulator answers gui)
set(cli_may planner simulator answers cli)

# Inside them: what stands in these folders may include the rooms of its own line, and itself. `planner/spec` stands for all
# rooms below it, `executor/kernels$` for that folder alone. Every arrow runs to a line further up.
set(rooms)
macro(room name)
  list(APPEND rooms ${name})
  set(${name}_includes ${ARGN})
endmacro()
room(planner/spec/text)
room(planner/spec/json planner/spec/text)
room(planner/spec/machine planner/spec/text planner/spec/json)
room(planner/spec/plan planner/spec/text planner/spec/json planner/spec/machine)
room(planner/spec/program planner/spec/text planner/spec/machine planner/spec/plan)
room(planner/spec/report planner/spec)
room(planner/command planner/spec)
room(planner/files planner/spec)
room(planner/recorded planner/spec)
room(planner/model/families planner/spec)
room(planner/model planner/spec planner/model/families)
room(planner/engines planner/spec)
room(planner/schedule planner/spec)
room(planner/cost/kernels planner/spec)
room(planner/cost/collectives planner/spec)
room(planner/calibration planner/spec planner/cost/kernels planner/cost/collectives)
room(planner/cost/software planner/spec planner/cost/kernels)
room(planner/cost/layer planner/spec planner/schedule planner/cost/kernels planner/cost/collectives planner/cost/software)
room(planner/cost/memory planner/spec planner/schedule planner/cost/kernels planner/cost/software planner/cost/layer)
room(planner/legality planner/spec planner/schedule planner/cost/software planner/cost/memory)
room(planner/cost/step planner/spec planner/schedule planner/cost)
room(planner/lowering/stage planner/spec planner/schedule planner/cost)
room(planner/lowering/data_parallel planner/spec planner/schedule planner/cost planner/lowering/stage)
room(planner/lowering planner/spec planner/model planner/engines planner/schedule planner/cost planner/lowering/stage
     planner/lowering/data_parallel)
room(planner/lowering/operands planner/spec planner/schedule planner/cost planner/lowering)
room(planner/lowering/checks planner/spec planner/lowering/stage)
room(planner/estimate planner/spec planner/schedule planner/cost planner/legality)
room(planner/search/space planner/spec planner/schedule planner/cost planner/legality planner/estimate)
room(planner/search/pricing planner/spec planner/schedule planner/cost planner/estimate planner/search/space)
room(planner/search planner/spec planner/model planner/engines planner/schedule planner/cost planner/legality planner/lowering planner/estimate
     planner/search/space planner/search/pricing)
room(planner/search/advice planner/spec planner/engines planner/schedule planner/legality planner/estimate planner/search)
room(planner/score/rows planner/spec planner/model planner/engines planner/schedule planner/cost planner/legality planner/lowering planner/estimate planner/search)
room(planner/score planner/spec planner/model planner/engines planner/schedule planner/cost planner/legality planner/lowering planner/estimate planner/search planner/score/rows)
room(planner/question planner/spec planner/model planner/engines planner/schedule planner/cost planner/legality planner/lowering planner/estimate planner/search planner/score)
room(planner/question/mfu planner/spec planner/model planner/cost planner/question)
room(planner/export/launch planner/spec)
room(planner/export/shell planner/spec planner/export/launch)
room(planner/export/framework planner/spec planner/legality planner/question)
room(planner/export/facts planner/spec planner/engines planner/schedule planner/cost planner/legality planner/question planner/export/framework)
room(planner/export/configuration planner/spec planner/question planner/export/launch planner/export/shell planner/export/framework)
room(planner/export planner/spec planner/model planner/engines planner/schedule planner/cost planner/legality planner/lowering planner/estimate planner/search planner/question
     planner/export/launch planner/export/shell planner/export/framework planner/export/facts planner/export/configuration)
room(executor/kernels planner/spec executor/optimizer)
room(executor/kernels/products planner/spec executor/kernels$)
room(executor/kernels/attention planner/spec executor/kernels$ executor/kernels/products)
room(executor/kernels/compute planner/spec executor/kernels$ executor/kernels/products executor/kernels/attention executor/optimizer
     executor/device)
room(executor/kernels/cudnn planner/spec executor/kernels/attention executor/device)
room(executor/kernels/cuda/device_code planner/spec executor/kernels$ executor/kernels/attention)
room(executor/kernels/cuda planner executor/kernels executor/device executor/optimizer)
room(simulator/workload planner)
room(simulator/clock planner simulator/workload)
room(simulator/drawing planner simulator/workload simulator/clock)
room(simulator/traces planner simulator/workload simulator/clock)
room(simulator/comparison planner simulator/workload simulator/clock simulator/traces)
room(answers planner simulator)
room(answers/html planner simulator answers)
room(gui/models/question planner simulator answers)
room(gui/models/memory planner simulator answers gui/models/question)
room(gui/models/timeline planner simulator answers gui/models/question gui/models/memory)
room(gui/models/explore planner simulator answers gui/models/question gui/models/memory)
room(gui/models/compare planner simulator answers gui/models/question gui/models/memory gui/models/timeline)
room(gui/models/scaling planner simulator answers gui/models/question)
room(gui/models/mesh planner simulator answers gui/models/question gui/models/scaling)
room(gui/models/window planner simulator answers gui/models/question gui/models/memory gui/models/timeline gui/models/explore
     gui/models/compare gui/models/scaling gui/models/mesh)
room(gui/models/session planner simulator answers gui/models/question gui/models/memory gui/models/timeline gui/models/explore
     gui/models/compare gui/models/scaling gui/models/mesh gui/models/window)
room(gui/models/commands planner simulator answers gui/models)

# The planner, the simulator and the answers are pure: no clock, no console, no files besides the reader and the file it opens, and
# besides the last words of a failed check.
set(impure "^#include <(chrono|ctime|time\\.h|iostream|fstream|cstdio|stdio\\.h|unistd\\.h|fcntl\\.h|sys/.*)>")
set(may_be_impure planner/spec/json/reader planner/spec/json/regular_file planner/spec/text/check planner/spec/json/catalogue planner/model/hub_cache
    simulator/traces/trace_file)
# Naming a file by its path is no I/O: readers and the catalogue do so, nobody else.
set(may_name_files "^planner/(spec/(json/(reader|regular_file|catalogue|csv_file)|machine/[a-z]+_reader|plan/plan|report/report_json)|model/(hf_config|hub_cache)|export/framework/framework_reader)$")
# What these words do, they do whatever header brought them. The catalogue and the cache of the Hub look names up in
# folders, and read how a file begins.
set(impure_words "(std::(cout|cerr|getenv|fopen|ifstream|ofstream|fstream)|(steady|system)_clock|sleep_(for|until)|directory_iterator|is_regular_file|is_directory|create_director|remove_all)")
set(may_use_words planner/spec/json/reader planner/spec/text/check planner/spec/json/catalogue planner/model/hub_cache
    simulator/traces/trace_file)
# One answer for any number of threads is the search's to keep: the rest of the planner has none, but
# for the orders of slots that the search's threads share.
set(threads "^#include <(thread|mutex|shared_mutex|atomic|future|condition_variable|semaphore|barrier|latch)>")
set(may_have_threads planner/search/best_first planner/search/best_rows planner/search/explore planner/search/finder
    planner/search/search planner/search/pricing/search_memory planner/search/search_threads
    planner/schedule/kept_slots)

# The viewer: what it shows is computed without ImGui, and what draws computes nothing. Panels may
# know words and units.
set(draws "^#include <(imgui|implot|imgui_internal|imgui_impl_[a-z0-9]+|GLFW/.*)(\\.h)?>")
set(panels_may "^#include \"(gui/|planner/spec/|simulator/drawing/(palette|timeline_ticks)\\.h)")

# Headers stay light: these are for sources.
set(heavy "^#include [<\"](nlohmann/|CLI/|Eigen/|Eigen>)")

# The edge of the programs, for cli and executor: what files and streams do to what is written.
set(edge "^planner/files/")

foreach(room planner simulator answers executor gui cli)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${room}/*.h ${ROOT}/${room}/*.cc ${ROOT}/${room}/*.cu)
  foreach(file ${files})
    file(STRINGS ${ROOT}/${file} lines REGEX "^#include ")
    string(REGEX REPLACE "\\.(h|cc|cu)$" "" stem ${file})
    string(REGEX REPLACE "/[^/]*$" "" folder ${file})
    # Kernels of GPUs stand beside those of the CPU, and are made of other things.
    if(file MATCHES "^executor/kernels/.*\\.cu$")
      set(folder executor/kernels/cuda)
    endif()
    if(NOT folder IN_LIST rooms AND folder MATCHES "^(planner|simulator|answers|gui/models)(/|$)")
      message(SEND_ERROR "${file}: ${folder} is no room: give it a line in tests/layering.cmake")
    endif()
    if(room MATCHES "^(planner|simulator|answers)$" AND NOT stem IN_LIST may_use_words
       AND NOT stem MATCHES "${edge}")
      file(STRINGS ${ROOT}/${file} words REGEX "${impure_words}")
      foreach(line ${words})
        message(SEND_ERROR "${file}: ${room} is pure: ${line}")
      endforeach()
    endif()
    foreach(line ${lines})
      if(line MATCHES "^#include \"(([a-z]+)/([a-z_/]*))")
        set(their_room ${CMAKE_MATCH_2})
        string(REGEX REPLACE "/[^/]*$" "" their_folder ${CMAKE_MATCH_1})
        if(NOT their_room IN_LIST ${room}_may)
          message(SEND_ERROR "${file}: ${room} may not include ${their_room}: ${line}")
        elseif(folder IN_LIST rooms AND NOT their_folder STREQUAL folder)
          set(allowed FALSE)
          foreach(may ${${folder}_includes})
            if(their_folder MATCHES "^${may}(/|$)")
              set(allowed TRUE)
            endif()
          endforeach()
          if(NOT allowed)
            message(SEND_ERROR "${file}: ${folder} may not include ${their_folder}: ${line}")
          endif()
        endif()
      elseif(line MATCHES "^#include \"")
        message(SEND_ERROR "${file}: includes start at the repository root: ${line}")
      elseif(room MATCHES "^(planner|simulator|answers)$" AND line MATCHES "${impure}"
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
      if(room MATCHES "^(planner|simulator|answers)$" AND line MATCHES "\"planner/files/" AND NOT stem MATCHES "${edge}")
        message(SEND_ERROR "${file}: ${room} writes no files: ${line}")
      endif()
      if(file MATCHES "\\.h$" AND line MATCHES "${heavy}")
        message(SEND_ERROR "${file}: headers stay light, include it in the source: ${line}")
      endif()
    endforeach()
  endforeach()
endforeach()
