// Eight threads write to a database and read from it: FOLDER ROUNDS.
#include "leveldb/db.h"
#include "leveldb/write_batch.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

int main(int count, char **arguments)
{
    leveldb::DB *database;
    leveldb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 10;
    int rounds = count > 2 ? atoi(arguments[2]) : 100;
    if (count < 2 || !leveldb::DB::Open(options, arguments[1], &database).ok())
        return 1;
    std::vector<std::thread> threads;
    long found[8] = {0};
    for (int k = 0; k < 8; k++)
        threads.emplace_back([=, &found] {
            for (int i = 0; i < rounds; i++) {
                char key[32];
                snprintf(key, sizeof key, "k%07d", (i * 7919 + k * 13) % 10007);
                database->Put(leveldb::WriteOptions(), key, std::string(100, 'a' + k));
                std::string value;
                found[k] += database->Get(leveldb::ReadOptions(), key, &value).ok();
            }
        });
    for (auto &thread : threads)
        thread.join();
    long sum = 0, entries = 0;
    for (long one : found)
        sum += one;
    auto *each = database->NewIterator(leveldb::ReadOptions());
    for (each->SeekToFirst(); each->Valid(); each->Next())
        entries++;
    delete each;
    delete database;
    printf("%ld %ld\n", sum, entries);
    return 0;
}
