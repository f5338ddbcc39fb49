# Fills a folder with what a jar holds beside classes: natives with a list of their names, since a class cannot list the entries
# of its jar, and licences.
# usage: cmake -D CARRIED=FOLDER -D JNI=LIBRARY -D STRIP=COMMAND -D PLATFORM=NAME -D STAGE=FOLDER -P stage.cmake
file(REMOVE_RECURSE ${STAGE})
set(natives ${STAGE}/org/qtensor/natives/${PLATFORM})
file(MAKE_DIRECTORY ${natives})
file(GLOB libraries ${CARRIED}/*.so.0)
foreach(library ${libraries} ${JNI})
  cmake_path(GET library FILENAME name)
  execute_process(COMMAND ${STRIP} -o ${natives}/${name} ${library} COMMAND_ERROR_IS_FATAL ANY)
  file(APPEND ${natives}/files.txt "${name}\n")
endforeach()
if(EXISTS ${CARRIED}/licences)
  file(COPY ${CARRIED}/licences DESTINATION ${STAGE}/META-INF)
endif()
