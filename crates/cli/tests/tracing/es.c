/* OpenGL ES 1, 2 and 3: arrays in the program's memory and mapped buffers, where the driver may be asked for less. */
#include "gl.h"

enum { STRIP = 5, TRIANGLES = 4, FLOAT = 0x1406, USHORT = 0x1403, VBO = 0x8892, IBO = 0x8893 };

static const float PLACES[] = {-1, -1, 0.8f, -1, -0.6f, 1, 1, 0.7f};

static void attributes(const char *version) {
    char vertex[300], fragment[300];
    int is_new = version[0] != 0;
    snprintf(vertex, sizeof vertex, "%s%s vec2 place; void main() { gl_Position = vec4(place, 0, 1); }", version,
             is_new ? "in" : "attribute");
    snprintf(fragment, sizeof fragment, "%sprecision mediump float; uniform vec4 color; %s void main() { %s = color; }",
             version, is_new ? "out vec4 drawn;" : "", is_new ? "drawn" : "gl_FragColor");
    unsigned program = program_of(vertex, fragment);
    int place = GL(int, glGetAttribLocation, unsigned, const char *)(program, "place");
    int color = GL(int, glGetUniformLocation, unsigned, const char *)(program, "color");
    GL(void, glUniform4f, int, float, float, float, float)(color, 1, is_new, 0.3f, 1);
    GL(void, glEnableVertexAttribArray, unsigned)(place);
    void (*pointer)(unsigned, int, unsigned, unsigned char, int, const void *) =
        GL(void, glVertexAttribPointer, unsigned, int, unsigned, unsigned char, int, const void *);
    pointer(place, 2, FLOAT, 0, 0, PLACES);
    GL(void, glDrawArrays, unsigned, int, int)(STRIP, 0, 4);
    end_frame();
    unsigned short indices[] = {3, 0, 2, 1};
    GL(void, glUniform4f, int, float, float, float, float)(color, 0, 0.5f, 1, 1);
    GL(void, glDrawElements, unsigned, int, unsigned, const void *)(TRIANGLES, 3, USHORT, indices);
    end_frame();
    if (!is_new)
        return;
    /* Indices in a buffer, which a context of this version shows by mapping it. */
    unsigned names[2];
    GL(void, glGenBuffers, int, unsigned *)(2, names);
    GL(void, glBindBuffer, unsigned, unsigned)(IBO, names[0]);
    GL(void, glBufferData, unsigned, ptrdiff_t, const void *, unsigned)(IBO, sizeof indices, indices, 0x88e4);
    GL(void, glDrawElements, unsigned, int, unsigned, const void *)(TRIANGLES, 3, USHORT, (void *)2);
    end_frame();
    GL(void, glBindBuffer, unsigned, unsigned)(VBO, names[1]);
    GL(void, glBufferData, unsigned, ptrdiff_t, const void *, unsigned)(VBO, sizeof PLACES, NULL, 0x88e4);
    float *mapped = GL(void *, glMapBufferRange, unsigned, ptrdiff_t, ptrdiff_t, unsigned)(VBO, 0, sizeof PLACES, 2);
    for (int n = 0; n < 8; n++)
        mapped[n] = -PLACES[n] / 2;
    GL(unsigned char, glUnmapBuffer, unsigned)(VBO);
    pointer(place, 2, FLOAT, 0, 0, NULL);
    GL(void, glDrawArrays, unsigned, int, int)(STRIP, 0, 4);
    end_frame();
}

int main(void) {
    open_display(4);
    begin(context_of(0x30a0, 2, 0, 0, NULL));
    end_frame();
    attributes("");
    begin(context_of(0x30a0, 3, 0, 0, NULL));
    end_frame();
    attributes("#version 300 es\n");
    begin(context_of(0x30a0, 1, 1, 0, NULL));
    end_frame();
    GL(void, glEnableClientState, unsigned)(0x8074);
    GL(void, glVertexPointer, int, unsigned, int, const void *)(2, FLOAT, 0, PLACES);
    GL(void, glColor4f, float, float, float, float)(1, 1, 0, 1);
    GL(void, glDrawArrays, unsigned, int, int)(STRIP, 0, 4);
    end_frame();
    return 0;
}
