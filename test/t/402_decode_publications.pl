# cells: pg15 pg17 pg18
# What publications say is what the output plugin ships: tables, schemas, partitions, columns, rows, actions, generated columns; the
# same as PostgreSQL's own pgoutput ships, where both can be compared.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new->allow_output_plugin;
my $slot = CdcBridge::Decode->new($postgres, 'a');
sub shipped { my (@records) = @_; return [ map { my $r = $_; [ "$r->{schema}.$r->{table}", $r->{op}, $r->{row} // $r->{old} ] } @records ]; }

# ---- tables, schemas, all; actions
$postgres->psql(<<'SQL');
create schema s;
create table t (id int primary key, a int);
create table u (id int primary key);
create table s.v (id int primary key);
create publication one for table t;
create publication by_schema for tables in schema s with (publish = 'insert, truncate');
create publication everything for all tables with (publish = 'delete');
insert into t values (1, 1); insert into u values (1); insert into s.v values (1);
update t set a = 2; update s.v set id = 2;
delete from t; delete from u; delete from s.v;
truncate t, s.v;
SQL
is_deeply(shipped($slot->peek(publication_names => 'one')), [ [ 'public.t', 'insert', { id => 1, a => 1 } ], [ 'public.t', 'update', { id => 1, a => 2 } ], [ 'public.t', 'delete', { id => 1 } ], [ 'public.t', 'truncate', undef ] ], 'a table');
is_deeply(shipped($slot->peek(publication_names => 'by_schema')), [ [ 's.v', 'insert', { id => 1 } ], [ 's.v', 'truncate', undef ] ], 'a schema, with its actions');
is_deeply([ map { "$_->{table} $_->{op}" } $slot->peek(publication_names => 'everything') ], [ 't delete', 'u delete', 'v delete' ], 'all tables, with its action');
is_deeply([ map { "$_->{table} $_->{op}" } $slot->peek(publication_names => 'by_schema, everything') ], [ 'v insert', 't delete', 'u delete', 'v delete', 'v truncate' ], 'two publications: what either publishes');
is_deeply([ map { "$_->{table} $_->{op}" } $slot->peek(publication_names => 'everything', tables => '*.t') ], ['t delete'], 'tables make it less');
is_deeply([ map { "$_->{table} $_->{op}" } $slot->peek(publication_names => 'one', actions => 'update') ], ['t update'], 'actions make it less');
$slot->skip;

# ---- altered in the middle: each change as the publication was then
$postgres->psql(<<'SQL');
insert into u values (10);
alter publication one add table u;
insert into u values (11);
alter publication one set (publish = 'delete');
insert into u values (12);
delete from u where id = 11;
alter publication one drop table u;
delete from u where id = 12;
create publication late for table u;
insert into u values (13);
alter publication late rename to later;
insert into u values (14);
drop publication later;
create publication later for table u;
insert into u values (15);
SQL
is_deeply([ map { "$_->{op} $_->{key}{id}" } $slot->peek(publication_names => 'one') ], [ 'insert 11', 'delete 11' ], 'each change as the publication was then');
is_deeply([ map { "$_->{op} $_->{key}{id}" } $slot->peek(publication_names => 'later') ], [ 'insert 14', 'insert 15' ], 'a publication is found by the name it had');
$slot->skip;

# ---- columns
$postgres->psql(<<'SQL');
create table c (id int primary key, a int, secret text, k2 int);
create publication some_columns for table c (id, a);
create publication no_key for table c (a, secret) with (publish = 'insert');
create publication all_columns for table c;
insert into c values (1, 2, 'x', 3);
update c set secret = 'y';
delete from c;
SQL
is_deeply(shipped($slot->peek(publication_names => 'some_columns')), [ [ 'public.c', 'insert', { id => 1, a => 2 } ], [ 'public.c', 'update', { id => 1, a => 2 } ], [ 'public.c', 'delete', { id => 1 } ] ], 'a list of columns');
my ($keyless) = $slot->peek(publication_names => 'no_key');
is_deeply([ $keyless->{row}, $keyless->{key} ], [ { a => 2, secret => 'x' }, undef ], 'a list without the key: no key');
like($slot->error(publication_names => 'some_columns, all_columns'), qr/0A000: cannot use different column lists for table "public\.c" in different publications\nHINT:/, 'different lists are refused, as PostgreSQL does');
$slot->skip;

# ---- rows
$postgres->psql(<<'SQL');
create table f (id int primary key, a int, b text);
alter table f replica identity full;
create publication filtered for table f where (a > 10);
create publication filtered_b for table f where (b = 'b');
insert into f values (1, 5, 'x'), (2, 15, 'y'), (3, 5, 'b'), (4, null, 'n');
update f set b = 'z' where id in (1, 2);
update f set a = 20 where id = 1;
update f set a = 1 where id = 2;
update f set a = 30 where id = 1;
delete from f;
truncate f;
SQL
is_deeply([ map { [ $_->{op}, $_->{row}{id} // $_->{old}{id} ] } $slot->peek(publication_names => 'filtered') ],
	[ [ 'insert', 2 ], [ 'update', 2 ], [ 'insert', 1 ], [ 'delete', 2 ], [ 'update', 1 ], [ 'delete', 1 ], [ 'truncate', undef ] ], 'a row filter: what moves in is an insert, what moves out a delete');
my ($in) = grep { $_->{op} eq 'insert' && $_->{row}{id} == 1 } $slot->peek(publication_names => 'filtered');
is_deeply([ $in->{row}, $in->{old} ], [ { id => 1, a => 20, b => 'z' }, undef ], '... a whole row, without an old one');
is_deeply([ map { [ $_->{op}, $_->{row}{id} // $_->{old}{id} ] } $slot->peek(publication_names => 'filtered,filtered_b') ],
	[ [ 'insert', 2 ], [ 'insert', 3 ], [ 'update', 2 ], [ 'insert', 1 ], [ 'delete', 2 ], [ 'update', 1 ], [ 'delete', 3 ], [ 'delete', 1 ], [ 'truncate', undef ] ], 'two filters: one of them has to hold');
is(scalar($slot->peek(publication_names => 'filtered, everything', actions => 'delete')), 4, 'a publication without a filter has all rows');
$slot->skip;

# the filter's column is large and was not touched
$postgres->psql(<<'SQL');
create table g (k text primary key, n int);
alter table g alter k set storage external;
create publication large for table g where (k like 'in%');
insert into g values (repeat('in', 1050), 1), (repeat('out', 700), 1);
update g set n = 2;
SQL
is_deeply([ map { [ $_->{op}, length($_->{row}{k}), $_->{row}{n} ] } $slot->take(publication_names => 'large') ], [ [ 'insert', 2100, 1 ], [ 'update', 2100, 2 ] ], 'a filter on a large value that was not touched');

# ---- P22: partitions
$postgres->psql(<<'SQL');
create table p (id int, at date, v text, primary key (id, at)) partition by range (at);
create table p1 (v text, gone int, at date not null, id int not null) partition by list (id);
alter table p1 drop column gone;
create table p1a (id int not null, v text, at date not null);
alter table p1 attach partition p1a for values in (1, 2, 3);
alter table p attach partition p1 for values from ('2020-01-01') to ('2021-01-01');
create table p2 partition of p for values from ('2021-01-01') to ('2022-01-01');
create publication leaves for table p;
create publication root for table p with (publish_via_partition_root = true);
create publication middle for table p1 with (publish_via_partition_root = true);
create publication root_rows for table p (id, at, v) where (id > 1) with (publish_via_partition_root = true);
insert into p values (1, '2020-05-05', 'a'), (2, '2021-05-05', 'b');
update p set at = '2021-06-06' where id = 1;
create table p3 partition of p for values from ('2022-01-01') to ('2023-01-01');
insert into p values (3, '2022-05-05', 'c');
delete from p where id = 3;
truncate p;
truncate p2;
truncate p1;
alter table p detach partition p2;
insert into p2 values (9, '2021-01-01', 'alone');
SQL
my $leaf_rows = [
	[ 'public.p1a', 'insert', { id => 1, at => '2020-05-05', v => 'a' } ], [ 'public.p2', 'insert', { id => 2, at => '2021-05-05', v => 'b' } ],
	[ 'public.p1a', 'delete', { id => 1, at => '2020-05-05' } ], [ 'public.p2', 'insert', { id => 1, at => '2021-06-06', v => 'a' } ],
	[ 'public.p3', 'insert', { id => 3, at => '2022-05-05', v => 'c' } ], [ 'public.p3', 'delete', { id => 3, at => '2022-05-05' } ] ];
sub rows_of { return shipped(grep { $_->{op} ne 'truncate' } @_); }
sub truncates_of { return [ map { [ $_->{table}, $_->{partition_of} ? $_->{partition_of}{table} : undef ] } grep { $_->{op} eq 'truncate' } @_ ]; }
my @all = $slot->peek(tables => 'public.p*');
is_deeply(rows_of(@all), [ @$leaf_rows, [ 'public.p2', 'insert', { id => 9, at => '2021-01-01', v => 'alone' } ] ], 'P22: without publications: partitions under their names, columns in any order');
is_deeply([ sort map { $_->[0] } @{ truncates_of(@all) } ], [ qw(p1a p1a p2 p2 p3) ], 'P22, P23: ... and so is TRUNCATE');
@all = $slot->peek(publication_names => 'leaves');
is_deeply(rows_of(@all), $leaf_rows, 'P22: a publication of the table: the same, new partitions too, not what was detached');
@all = $slot->peek(publication_names => 'root');
is_deeply(rows_of(@all), [ map { [ 'public.p', @$_[ 1, 2 ] ] } @$leaf_rows ], 'P22: publish_via_partition_root: the name and the columns of the table');
is_deeply(truncates_of(@all), [ [ 'p', undef ], [ 'p2', 'p' ], [ 'p1', 'p' ] ], 'P22, P23: TRUNCATE of the table is one; of partitions alone under theirs, as part of it');
is_deeply($all[0]{key}, { id => 1, at => '2020-05-05' }, 'P22: the key');
@all = $slot->peek(publish_via_partition_root => 'on', tables => 'public.p');
is_deeply(rows_of(@all), [ map { [ 'public.p', @$_[ 1, 2 ] ] } @$leaf_rows ], 'P22: the same by option, with tables by the name of the table');
is_deeply(rows_of($slot->peek(publication_names => 'middle')), [ map { [ 'public.p1', @{ $leaf_rows->[$_] }[ 1, 2 ] ] } 0, 2 ], 'P22: a table in the middle');
is_deeply([ map { $_->[0] } @{ rows_of($slot->peek(publication_names => 'middle, root')) } ], [ ('public.p') x 6 ], 'P22: two publications: the topmost name');
is_deeply([ map { [ @$_[ 0, 1 ] ] } @{ rows_of($slot->peek(publication_names => 'root_rows')) } ], [ [ 'public.p', 'insert' ], [ 'public.p', 'insert' ], [ 'public.p', 'delete' ] ], 'P22: filter of the table');
$slot->skip;

# ---- generated columns
$postgres->psql(q{create table gen (id int primary key, a int, s int generated always as (a * 2) stored); create publication gen for table gen; insert into gen values (1, 4)});
is_deeply(($slot->take(publication_names => 'gen'))[0]{row}, { id => 1, a => 4 }, 'a publication ships no generated columns by default');
SKIP:
{
	skip('publish_generated_columns is new in PostgreSQL 18', 3) if $postgres->major < 18;
	$postgres->psql(<<'SQL');
create publication gen_stored for table gen with (publish_generated_columns = stored);
create publication gen_listed for table gen (id, s);
create table virtual (id int primary key, a int, v int generated always as (a * 2) virtual);
alter table virtual replica identity full;
create publication by_virtual for table virtual where (v > 10);
insert into gen values (2, 5);
insert into virtual values (1, 5), (2, 6);
SQL
	is_deeply(($slot->peek(publication_names => 'gen_stored'))[0]{row}, { id => 2, a => 5, s => 10 }, 'publish_generated_columns');
	is_deeply(($slot->peek(publication_names => 'gen_listed'))[0]{row}, { id => 2, s => 10 }, 'a generated column in the list');
	is_deeply([ map { $_->{row} } $slot->take(publication_names => 'by_virtual') ], [ { id => 2, a => 6 } ], 'a filter on a virtual generated column');
}

# ---- the same as pgoutput, in random publications: how many rows of which kind under which name
my $seed = $ENV{CDC_SEED} // time();
srand($seed);
note("seed $seed");
my @trees = map { ("q$_", "q${_}a", "q${_}b") } 1 .. 3;
$postgres->psql(join('', map { "create table q$_ (id int primary key, a int) partition by range (id); create table q${_}a partition of q$_ for values from (0) to (50); "
	  . "create table q${_}b partition of q$_ for values from (50) to (100); alter table q$_ replica identity full; alter table q${_}a replica identity full; alter table q${_}b replica identity full;" } 1 .. 3)
	  . q{select pg_create_logical_replication_slot('theirs', 'pgoutput')});
$slot->skip;
my $rounds = 12;
my @publications = map { "r$_" } 1 .. $rounds;
for my $name (@publications)
{
	my @members = grep { rand() < 0.3 } @trees;
	my @actions = grep { rand() < 0.8 } qw(insert update delete truncate);
	my $root = rand() < 0.5 ? 'true' : 'false';
	# PostgreSQL refuses filters on partitioned tables that would not be used
	$postgres->psql("create publication $name " . (@members ? 'for table ' . join(', ', map { rand() < 0.4 && (/[ab]$/ || $root eq 'true') ? "$_ where (a > " . int(rand(10)) . ')' : $_ } @members) : rand() < 0.5 ? 'for all tables' : '')
		  . " with (publish = '" . join(',', @actions) . "', publish_via_partition_root = $root)");
}
$slot->skip;
$postgres->psql(q{select pg_replication_slot_advance('theirs', pg_current_wal_lsn())});
for (1 .. 60)
{
	my $table = 'q' . (1 + int(rand(3)));
	my $id = int(rand(100));
	my $a = int(rand(12));
	my $kind = rand();
	$postgres->psql($kind < 0.5 ? "insert into $table values ($id, $a) on conflict (id) do update set a = excluded.a" : $kind < 0.75 ? "update $table set a = $a where id % 10 = " . ($id % 10)
		  : $kind < 0.95 ? "delete from $table where id % 7 = " . ($id % 7) : 'truncate ' . (rand() < 0.5 ? $table : "${table}a"));
}
for my $names ((map { [$_] } @publications), map { [ @publications[ int(rand($rounds)), int(rand($rounds)) ] ] } 1 .. 6)
{
	my $list = join(',', @$names);
	my %theirs;
	my %name_of;
	my $hex = $postgres->psql(qq{select encode(data, 'hex') from pg_logical_slot_peek_binary_changes('theirs', null, null, 'proto_version', '1', 'publication_names', '$list')});
	for my $message (map { pack('H*', $_) } split(/\n/, $hex))
	{
		my $kind = substr($message, 0, 1);
		if ($kind eq 'R') { my ($oid, $schema, $table) = unpack('xNZ*Z*', $message); $name_of{$oid} = $table; }
		elsif ($kind =~ /[IUD]/) { $theirs{ $name_of{ unpack('xN', $message) } . " $kind" }++; }
		elsif ($kind eq 'T') { my ($count, $flags, @oids) = unpack('xNCN*', $message); $theirs{"$name_of{$_} T"}++ for @oids; }
	}
	my %ours;
	$ours{"$_->{table} " . uc(substr($_->{op}, 0, 1))}++ for grep { !$_->{partition_of} } $slot->peek(publication_names => $list);
	is_deeply(\%ours, \%theirs, "$list: as pgoutput ships it");
}

done_testing();
