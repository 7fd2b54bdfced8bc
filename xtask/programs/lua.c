/* Runs a Lua script: FILE [TIMES]. */
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    lua_State *state = luaL_newstate();
    int times = count > 2 ? atoi(arguments[2]) : 1;
    luaL_openlibs(state);
    for (int n = 0; n < times; n++)
        if (count < 2 || luaL_dofile(state, arguments[1])) {
            puts(lua_tostring(state, -1));
            return 1;
        }
    lua_close(state);
    return 0;
}
