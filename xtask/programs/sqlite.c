/* Fills a table in memory, asks and changes it: ROWS. */
#include "sqlite3.h"
#include <stdio.h>
#include <stdlib.h>

static int print(void *unused, int count, char **values, char **names)
{
    (void)unused, (void)names;
    for (int n = 0; n < count; n++)
        printf("%s ", values[n] ? values[n] : "null");
    return 0;
}

int main(int count, char **arguments)
{
    sqlite3 *database;
    char *error = 0, text[1000];
    snprintf(text, sizeof text,
             "create table t(a integer primary key, b text, c real); create index i on t(b);"
             "with recursive n(x) as (select 1 union all select x+1 from n where x<%d)"
             " insert into t select x, 'k'||((x*7919)%%20011), x*1.5 from n;"
             "select count(*), sum(c) from t where b like 'k1%%'; update t set c=c+1 where a%%3=0;"
             "delete from t where a%%5=0; select max(b), sum(c) from t;",
             count > 1 ? atoi(arguments[1]) : 1000);
    sqlite3_open(":memory:", &database);
    int result = sqlite3_exec(database, text, print, 0, &error);
    printf("%d %s\n", result, error ? error : "ok");
    sqlite3_close(database);
    return result;
}
