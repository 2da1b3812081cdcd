# shardwise_room(folder SWITCH [MISSING reason…])
# Builds a room that not every machine can build. SWITCH is a cache variable, auto | on | off:
# auto builds the room when it can and says why when it cannot, on fails instead, off leaves it out.
# MISSING names what the machine lacks, one reason an item; the caller looks for the packages.
function(shardwise_room folder switch)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "MISSING")
  set(${switch} auto CACHE STRING "Build ${folder}/: auto, on or off")
  set_property(CACHE ${switch} PROPERTY STRINGS auto on off)

  set(reasons ${arg_MISSING})
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    list(APPEND reasons "this source tree has no ${folder}/")
  endif()
  list(JOIN reasons ", " why)

  if(${switch} STREQUAL "off")
    message(STATUS "${folder}: not built, ${switch}=off")
  elseif(${switch} STREQUAL "auto" AND reasons)
    message(STATUS "${folder}: not built, ${why} (${switch}=auto)")
  elseif(${switch} STREQUAL "on" AND reasons)
    message(FATAL_ERROR "${folder}: cannot be built, ${why} (${switch}=on)")
  elseif(${switch} MATCHES "^(auto|on)$")
    message(STATUS "${folder}: built (${switch}=${${switch}})")
    add_subdirectory(${folder})
  else()
    message(FATAL_ERROR "${switch}=${${switch}}: use auto, on or off")
  endif()
endfunction()
