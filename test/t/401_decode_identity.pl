# cells: pg15 pg18
# What old rows have, which row a change means, and large values that a change did not touch.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new->allow_output_plugin;
my $slot = CdcBridge::Decode->new($postgres, 'a');
my $unavailable = '__debezium_unavailable_value';

# ---- P1, P2: large values that an update does not touch, in every kind of type
$postgres->psql(<<'SQL');
create extension hstore;
create table toast (id int primary key, n int, t text, a text[], i int8[], h hstore, j jsonb, u uuid[], b bytea, num numeric, v varchar);
alter table toast alter t set storage external, alter a set storage external, alter i set storage external, alter h set storage external,
  alter j set storage external, alter u set storage external, alter b set storage external, alter num set storage external, alter v set storage external;
create function big(i int) returns setof toast language sql as $$
  select i, 0, repeat('t' || i, 3000), array(select 'a' || g from generate_series(1, 2000) g), array(select g::int8 from generate_series(1, 2000) g),
    (select hstore(array_agg('k' || g), array_agg('v' || g)) from generate_series(1, 2000) g), (select jsonb_agg(g) from generate_series(1, 3000) g),
    array(select md5(g::text)::uuid from generate_series(1, 1000) g), decode(repeat('0fff', 3000), 'hex'), repeat('123456789', 1500)::numeric, repeat('v' || i, 3000) $$;
insert into toast select * from big(1);
update toast set n = 1;
SQL
my ($insert, $update) = $slot->peek;
my @large = qw(t a i h j u b num v);
is(length($insert->{row}{t}), 6000, 'an insert has all values');
is(scalar(@{ $insert->{row}{u} }), 1000, '... arrays too');
is_deeply([ sort @{ $update->{unchanged} } ], [ sort @large ], 'P1, P2: plain JSON names what was not touched');
is_deeply($update->{row}, { id => 1, n => 1 }, 'P1: ... and leaves it out of the row, which is not null');
my $after = ($slot->take(format => 'debezium-json'))[1]{after};
is_deeply([ @$after{qw(t h j num v)} ], [ ($unavailable) x 5 ], 'P1, P2: Debezium has its placeholder');
is_deeply([ @$after{qw(a i u)} ], [ ([$unavailable]) x 3 ], 'P2: ... in arrays, as an array');
is($after->{b}, 'X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==', 'P2: ... in bytea, as base64');

$postgres->psql(q{update toast set t = null, num = 1; update toast set t = 'short'});
my ($null, $short) = $slot->take;
ok(exists $null->{row}{t} && !defined $null->{row}{t}, 'P1: a value that became null is null, and not untouched');
is($null->{row}{num}, '1', '... and one that became small is there');
is($short->{row}{t}, 'short', '... also when it was null before');

# one statement whose rows differ in that (artie #100)
$postgres->psql(q{insert into toast select * from big(2); update toast set t = case when id = 2 then repeat('new', 2000) else t end, n = n + 1 where id in (1, 2)});
my (undef, @both) = $slot->take;
is_deeply([ map { [ $_->{key}{id}, (grep { $_ eq 't' } @{ $_->{unchanged} }) ? 'untouched' : length($_->{row}{t}) ] } sort { $a->{key}{id} <=> $b->{key}{id} } @both ], [ [ 1, 5 ], [ 2, 6000 ] ], 'P1: rows of one statement');

# ---- REPLICA IDENTITY FULL fills it
$postgres->psql(q{alter table toast replica identity full; update toast set n = 7 where id = 2; delete from toast where id = 2});
my ($full, $deleted) = $slot->take;
ok(!$full->{unchanged}, 'P1: REPLICA IDENTITY FULL: nothing is unknown');
is_deeply([ length($full->{row}{t}), scalar(@{ $full->{row}{u} }), length($full->{row}{num}) ], [ 6000, 1000, 13500 ], 'P1, P2: ... values come from the old row');
is($full->{old}{n}, 1, '... which is there as a whole');
is_deeply($full->{key}, { id => 2 }, '... the key is still the primary key');
is(length($deleted->{old}{v}), 6000, '... of a delete too');

# ---- a large value in the key
$postgres->psql(<<'SQL');
create table long_key (k text primary key, n int, filler text);
alter table long_key alter k set storage external, alter filler set storage external;
insert into long_key values (repeat('k', 2100), 1, repeat('f', 4000));
update long_key set n = 2;
SQL
my (undef, $key) = $slot->take;
is_deeply([ length($key->{key}{k}), length($key->{row}{k}), $key->{unchanged} ], [ 2100, 2100, ['filler'] ], 'P1: a large key that was not touched is there all the same');

# ---- P4: no identity
$postgres->psql(<<'SQL');
create table keyless (a int, b text);
create table nothing (a int primary key, b text);
alter table nothing replica identity nothing;
insert into keyless values (1, 'x');
insert into nothing values (1, 'x');
update keyless set b = 'y';
delete from keyless;
update nothing set a = 2;
delete from nothing;
SQL
@both = $slot->take;
is_deeply([ map { "$_->{table} $_->{op}" } @both ], [ 'keyless insert', 'nothing insert', 'keyless update', 'keyless delete', 'nothing update', 'nothing delete' ], 'P4: without identity everything is told');
is_deeply([ map { [ exists $_->{key}, exists $_->{old} ] } @both ], [ ([ '', '' ]) x 6 ], 'P4: ... and nothing is made up');
my @warnings = $postgres->{messages} =~ /WARNING:  55000: updates and deletes of table (\S+) do not say which row they mean/g;
is_deeply(\@warnings, [ 'public.keyless', 'public.nothing' ], 'P4: a warning for each table, once');
like($postgres->{messages}, qr/HINT:  Give it a primary key, or use ALTER TABLE public.keyless REPLICA IDENTITY FULL\./, 'P4: ... with what to do');
$postgres->psql(q{alter table keyless replica identity full; insert into keyless values (1, 'x'); delete from keyless});
is_deeply(($slot->take)[1]{old}, { a => 1, b => 'x' }, 'P4: FULL without a key: the whole row');

# ---- P5: REPLICA IDENTITY USING INDEX, and the index goes and comes
$postgres->psql(<<'SQL');
create table by_index (id int primary key, code text not null, part int not null, b text);
create unique index by_index_code on by_index (part, code);
alter table by_index replica identity using index by_index_code;
insert into by_index values (1, 'c', 2, 'x');
update by_index set b = 'y';
update by_index set code = 'd';
drop index by_index_code;
update by_index set b = 'z', code = 'e';
delete from by_index;
create unique index by_index_code on by_index (code);
alter table by_index replica identity using index by_index_code;
insert into by_index values (1, 'c', 2, 'x');
delete from by_index;
SQL
my @changes = $slot->take;
is_deeply([ map { $_->{key} } @changes ], [ ({ part => 2, code => 'c' }) x 2, { part => 2, code => 'd' }, undef, undef, ({ code => 'c' }) x 2 ], 'P5: the key follows the index');
is_deeply([ map { $_->{old} } @changes ], [ undef, undef, { part => 2, code => 'c' }, undef, undef, undef, { code => 'c' } ], 'P5: ... and so do old rows');
like($postgres->{messages}, qr/updates and deletes of table public\.by_index do not say/, 'P5: that it was gone is told');

# the order of a key is that of its index
$postgres->psql(q{create table ordered (a int, b int, c int, primary key (c, a)); insert into ordered values (1, 2, 3)});
like(($slot->take_lines)[0], qr/"key":\{"c":3,"a":1\}/, 'the key has the order of its index');

# ---- P18, P20: columns that come and go, values that stand nowhere in the tuple
$postgres->psql(<<'SQL');
create table shape (id int primary key, a int, gone text);
insert into shape values (1, 1, 'x');
insert into shape values (2, 2, 'y');
alter table shape add column b text default 'default value';
alter table shape replica identity full;
update shape set a = 10 where id = 1;
delete from shape where id = 2;
alter table shape drop column gone;
insert into shape values (3, 3);
alter table shape rename column a to renamed;
alter table shape alter renamed type text using 'n' || renamed;
insert into shape values (4, 'four');
alter table shape rename to shape2;
insert into shape2 values (5, 'five');
create schema elsewhere;
alter table shape2 set schema elsewhere;
insert into elsewhere.shape2 values (6, 'six');
drop table elsewhere.shape2;
SQL
@changes = $slot->take;
is_deeply([ map { $_->{row} // $_->{old} } @changes[ 0 .. 3 ] ],
	[ { id => 1, a => 1, gone => 'x' }, { id => 2, a => 2, gone => 'y' }, { id => 1, a => 10, gone => 'x', b => 'default value' }, { id => 2, a => 2, gone => 'y', b => 'default value' } ],
	'P18: a column that was added with a default has it in old and new rows');
is($changes[2]{old}{b}, 'default value', 'P18: ... in the old row of an update');
is_deeply([ map { [ "$_->{schema}.$_->{table}", $_->{row} ] } @changes[ 4 .. $#changes ] ],
	[ [ 'public.shape', { id => 3, a => 3, b => 'default value' } ], [ 'public.shape', { id => 4, renamed => 'four', b => 'default value' } ],
		[ 'public.shape2', { id => 5, renamed => 'five', b => 'default value' } ], [ 'elsewhere.shape2', { id => 6, renamed => 'six', b => 'default value' } ] ],
	'P20: each row as its table was then, read after the table is gone; a rewrite brings no rows');

# ---- DDL and rows in one transaction
$postgres->psql(<<'SQL');
begin;
create table made (id int primary key);
insert into made values (1);
alter table made add column b text default 'd';
insert into made values (2, 'x');
savepoint s;
alter table made add column c int;
insert into made values (3, 'y', 3);
rollback to s;
update made set b = 'z' where id = 1;
truncate made;
insert into made values (4);
commit;
SQL
is_deeply([ map { $_->{row} // $_->{op} } $slot->take ], [ { id => 1 }, { id => 2, b => 'x' }, { id => 1, b => 'z' }, 'truncate', { id => 4, b => 'd' } ], 'P20: DDL between the rows of one transaction, also rolled back');

# ---- generated columns
my $virtual = $postgres->major >= 18 ? ', v int generated always as (a + 2) virtual' : '';
$postgres->psql("create table generated (id int primary key, a int, s int generated always as (a + 1) stored$virtual); insert into generated values (1, 5)");
is_deeply(($slot->peek)[0]{row}, { id => 1, a => 5, s => 6 }, 'stored generated columns are shipped, virtual ones stand in no row');
is_deeply(($slot->take(generated_columns => 'off'))[0]{row}, { id => 1, a => 5 }, 'generated_columns off');

# ---- P15: tables that come and go by the thousand, each with its invalidations, around one that stays
$postgres->psql(<<'SQL');
create table stays (id int primary key, v text);
do $$ begin
  for i in 1 .. 1500 loop
    execute format('create table storm%s (id int primary key, v text); insert into storm%s values (%s, %L)', i, i, i, 'x');
    execute format('insert into stays values (%s, %L)', i, 'y');
    if i % 5 = 0 then create temp table passing (id int); drop table passing; end if;
    execute format('drop table storm%s', i);
    commit;
  end loop;
end $$;
SQL
@changes = $slot->take;
is(scalar(grep { $_->{table} eq 'stays' && $_->{row}{v} eq 'y' } @changes), 1500, 'P15: rows of the table that stays');
is(scalar(grep { $_->{table} eq "storm$_->{row}{id}" && $_->{row}{v} eq 'x' } @changes), 1500, '... and of those that came and went');

# ---- what is not a table
$postgres->psql(<<'SQL');
create table base (id int primary key);
create materialized view seen as select * from base;
create unlogged table unlogged (id int primary key);
insert into base values (1);
refresh materialized view seen;
insert into unlogged values (1);
create temp table temporary (id int primary key);
insert into temporary values (1);
cluster base using base_pkey;
vacuum full base;
SQL
is_deeply([ map { $_->{table} } $slot->take ], ['base'], 'no materialized views, temporary and unlogged tables, no rewrites');

done_testing();
