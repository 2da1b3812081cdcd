# What gui/ needs beside our own code. Dear ImGui (docking branch, 1.92 or later) and ImPlot (with
# ImPlotSpec) as sources, compiled into the target `imgui`; GLFW and FreeType from the system.
# shardwise_gui_missing names what is not here, and the command that fetches it.
set(SHARDWISE_IMGUI_SOURCE "" CACHE PATH
    "Folder with ImGui's docking branch and ImPlot; empty: build/imgui, which scripts/imgui.sh fills")
set(shardwise_imgui_folder ${SHARDWISE_IMGUI_SOURCE})
set(hint "SHARDWISE_IMGUI_SOURCE=${SHARDWISE_IMGUI_SOURCE}")
if(NOT shardwise_imgui_folder)
  set(shardwise_imgui_folder ${PROJECT_SOURCE_DIR}/build/imgui)
  set(hint "run scripts/imgui.sh")
endif()

# _shardwise_sources(RESULT header): the folder of a header below the tree, wherever it lies there.
function(_shardwise_sources result header)
  find_path(found ${header} NO_CACHE NO_DEFAULT_PATH PATHS ${shardwise_imgui_folder}
            PATH_SUFFIXES imgui implot external/imgui/imgui external/implot/implot .)
  if(found)
    set(${result} ${found} PARENT_SCOPE)
  endif()
endfunction()
_shardwise_sources(shardwise_imgui imgui.h)
_shardwise_sources(shardwise_implot implot.h)
find_path(SHARDWISE_GLFW_INCLUDE GLFW/glfw3.h)
find_library(SHARDWISE_GLFW_LIBRARY glfw)
find_package(Freetype QUIET)
mark_as_advanced(SHARDWISE_GLFW_INCLUDE SHARDWISE_GLFW_LIBRARY)

set(shardwise_gui_missing)
if(NOT shardwise_imgui)
  list(APPEND shardwise_gui_missing "no imgui.h (${hint})")
else()
  file(STRINGS ${shardwise_imgui}/imgui.h traits REGEX "^#define IMGUI_HAS_(DOCK|TEXTURES)")
  list(LENGTH traits count)
  if(count LESS 2)
    list(APPEND shardwise_gui_missing
      "imgui.h is not of the docking branch, 1.92 or later (${hint})")
  endif()
endif()
if(NOT shardwise_implot)
  list(APPEND shardwise_gui_missing "no implot.h (${hint})")
else()
  file(STRINGS ${shardwise_implot}/implot.h traits REGEX "^struct ImPlotSpec")
  if(NOT traits)
    list(APPEND shardwise_gui_missing "implot.h has no ImPlotSpec (${hint})")
  endif()
endif()
if(NOT SHARDWISE_GLFW_INCLUDE OR NOT SHARDWISE_GLFW_LIBRARY)
  list(APPEND shardwise_gui_missing "GLFW is missing (libglfw3-dev)")
endif()
if(NOT Freetype_FOUND)
  list(APPEND shardwise_gui_missing "FreeType is missing (libfreetype-dev)")
endif()

# shardwise_imgui_target(): the libraries as `imgui`. Their warnings are not ours. The flags are
# part of every picture: without FMA a picture has the same bytes under every compiler; ImPlot
# draws doubles alone, which compiles ten times faster; one list of triangles has room for more
# than 65,535 vertices.
function(shardwise_imgui_target)
  set(sources
    ${shardwise_imgui}/imgui.cpp
    ${shardwise_imgui}/imgui_draw.cpp
    ${shardwise_imgui}/imgui_tables.cpp
    ${shardwise_imgui}/imgui_widgets.cpp
    ${shardwise_imgui}/misc/freetype/imgui_freetype.cpp
    ${shardwise_imgui}/backends/imgui_impl_glfw.cpp
    ${shardwise_imgui}/backends/imgui_impl_opengl3.cpp
    ${shardwise_implot}/implot.cpp
    ${shardwise_implot}/implot_items.cpp)
  if(EXISTS ${shardwise_imgui}/imgui_stacklayout.cpp)  # of imgui-bundle, whose imgui.cpp calls it
    list(APPEND sources ${shardwise_imgui}/imgui_stacklayout.cpp)
  endif()
  add_library(imgui STATIC ${sources})
  target_include_directories(imgui SYSTEM PUBLIC
    ${shardwise_imgui} ${shardwise_imgui}/backends ${shardwise_implot} ${SHARDWISE_GLFW_INCLUDE})
  target_compile_features(imgui PUBLIC cxx_std_20)
  target_compile_definitions(imgui PUBLIC
    IMGUI_ENABLE_FREETYPE IMGUI_DISABLE_OBSOLETE_FUNCTIONS ImDrawIdx=unsigned
    "IMPLOT_CUSTOM_NUMERIC_TYPES=(double)" GLFW_INCLUDE_NONE)
  target_compile_options(imgui PRIVATE -w -ffp-contract=off -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
  if(SHARDWISE_SANITIZE)
    target_compile_options(imgui PRIVATE -fsanitize=${SHARDWISE_SANITIZE}
      -fno-sanitize-recover=all -fno-omit-frame-pointer)
  endif()
  target_link_libraries(imgui PUBLIC Freetype::Freetype ${SHARDWISE_GLFW_LIBRARY} ${CMAKE_DL_LIBS})
  set_target_properties(imgui PROPERTIES CXX_EXTENSIONS OFF)
  shardwise_use_ccache(imgui)
endfunction()
