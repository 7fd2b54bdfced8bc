/* What the calls of a trace depend on: types, data, names of objects, contexts. */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdint.h>

typedef uint32_t GLenum;
typedef uint32_t GLuint;
typedef int32_t GLint;
typedef uint8_t GLubyte;
typedef int8_t GLbyte;
typedef char GLchar;
typedef int16_t GLshort;
typedef uint16_t GLushort;
typedef float GLfloat;
typedef double GLdouble;
typedef int64_t GLint64;
typedef uint64_t GLuint64;
typedef intptr_t GLintptr;
typedef void *GLsync;

/* Bytes of data.bin from this offset on; they stay where they are to the end. */
void *blob(uint64_t offset);

/* A pointer of the traced program: into mapped memory, or an offset into a buffer as it is. */
void *address(uint64_t traced);

/* Numbers that C has no literal for. */
float float_of(uint32_t bits);
double double_of(uint64_t bits);

/* Kinds of objects with names of their own; the numbers are those of the program that wrote this. */
enum { LOCATION = 100, BLOCK = 101 };

/* The name that an object has here. */
GLuint object(int kind, uint64_t traced);
GLsync sync_object(uint64_t traced);
void made(int kind, uint64_t traced, GLuint real);
void made_many(int kind, uint32_t count, const GLuint *traced, const GLuint *real);
void made_range(int kind, uint64_t traced, uint32_t count, GLuint real);
void made_sync(uint64_t traced, GLsync real);
void forget_sync(uint64_t traced);

/* Locations of uniforms and indexes of blocks, by program; a location's program may be the current one. */
void used_program(GLuint traced);
void location_is(GLuint program, GLint traced, GLint real);
GLint location_of(GLuint program, GLint traced);
GLint location(GLint traced);
void block_is(GLuint program, GLuint traced, GLuint real);
GLuint block_of(GLuint program, GLuint traced);

/* Memory that the traced program wrote to. */
void mapped(uint64_t traced, void *real, int64_t length, GLuint target, int is_name);
void unmapped(GLuint target, int is_name);
void allocated(uint64_t traced, uint64_t length);
void released(uint64_t traced);
void copied(uint64_t traced, const void *from, uint64_t length);

/* The window's color buffer has another name here. */
GLenum window_buffer(GLenum traced);

/* True when pixels are read into a buffer. */
int pack_buffer(void);

/* Contexts and frames. */
enum { API_GL = 0, API_ES = 1 };
void new_context(int context, int share, int api, int major, int minor, int profile);
void share_contexts(int first, int second);
void end_context(int context);
void make_current(int context, int drawable);
void frame_end(uint64_t call);

/* The contents of functions.c. */
struct function { const char *name; void **place; };
extern const struct function functions[];
struct size { int width, height; };
extern const struct size drawables[];
extern const int drawables_count;
extern const uint64_t data_bytes;
void replay(void);

#endif
