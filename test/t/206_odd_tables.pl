# Tables that hold more than they show, and values of extreme size. MariaDB: system-versioned tables are mirrored as what is current,
# copied under writers and streamed; times in the format of old servers. MySQL: generated invisible primary keys; a JSON document of 32 MB.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;
use Time::HiRes qw(time);

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $seed = $ENV{CDC_SEED} // int(time());
note("seed $seed");
$source->{seed} = $seed;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 20}')->setup;
$source->sql('create database shop');

sub versioned
{
	my %versioned = (
		plain => 'id int primary key, v int, u int unique',
		declared => 'id int primary key, v int, u int unique, rs timestamp(6) generated always as row start, re timestamp(6) generated always as row end, period for system_time(rs, re)',
		invisible => 'id int, v int, u int, rs timestamp(6) generated always as row start invisible, re timestamp(6) generated always as row end invisible, period for system_time(rs, re), primary key (id, re)',
		some => 'id int primary key, v int, u int without system versioning',
		keyless => 'id int, v int, u int',
	);
	my @names = sort keys %versioned;
	my @keyed = grep { $_ ne 'keyless' } @names;
	my %title = map { $_ => "D22: versioned, $_" } @names;
	for my $name (@names)
	{
		$source->sql("create table shop.$name ($versioned{$name}) with system versioning", "insert into shop.$name (id, v, u) values " . join(', ', map { "($_, 0, $_)" } 1 .. 60),
			"update shop.$name set v = v + 1", "delete from shop.$name where id > 50");
	}
	# times in the format of old servers, whose fractions the log does not describe
	$source->sql('set global mysql56_temporal_format = off');
	my $old = $source->connect;
	$old->do($_) for 'create table shop.old_times (id int primary key, a time, b datetime, c timestamp null)', 'create table shop.old_fractions (id int primary key, a time(3))',
	  q{insert into shop.old_times values (1, '-838:59:59', '9999-12-31 23:59:59', '2038-01-19 03:14:07'), (2, '00:00:00', '0001-01-01', '1970-01-01 00:00:01'), (3, null, null, null)}, q{insert into shop.old_fractions values (1, '-1:00:00.5')};
	$source->sql('set global mysql56_temporal_format = on');
	# the source has far more than it shows
	cmp_ok($source->query_value('select count(*) from shop.plain for system_time all'), '>', 100, 'D22: the source has history');
	my $change = sub {
		my ($dbh) = @_;
		my $table = $keyed[ rand @keyed ];
		my ($id, $other, $v) = (1 + int(rand(60)), 1 + int(rand(60)), int(rand(1e6)));
		my @ways = (
			"update shop.$table set v = $v where id = $id", "update ignore shop.$table set u = $other where id = $id", "update ignore shop.$table set id = $other where id = $id",
			"delete from shop.$table where id = $id", "insert ignore into shop.$table (id, v, u) values ($id, $v, $id)", "replace into shop.$table (id, v, u) values ($id, $v, $other)",
			"insert ignore into shop.$table (id, v, u) values ($id, $v, $other) on duplicate key update v = $v", "delete history from shop.$table");
		my $ok = eval { $dbh->do($ways[ rand @ways ]); 1; };
		die $@ unless $ok || $@ =~ /(deadlock|duplicate|lock wait|record has changed)/i;
	};
	$source->start_writers(4, $change);
	$pipeline->start->wait_for_state('streaming')->wait_for_tables;
	$source->sql(map { ("update shop.keyless set v = v + 1 where id = $_", "delete from shop.keyless where id = $_ + 20", "insert into shop.keyless values ($_ + 100, 1, 1)") } 1 .. 10);
	$source->stop_writers;
	$pipeline->wait_for_catchup->are_same('copied under writers', \%title, @names);
	$source->sql(q{insert into shop.old_times select id + 10, a, b, c from shop.old_times}, q{update shop.old_times set a = '23:59:59', b = '2026-02-03 04:05:06', c = '2026-02-03 04:05:06' where id = 3}, 'delete from shop.old_times where id = 2', q{insert into shop.old_fractions values (2, '1:00:00.5')});
	$pipeline->wait_for_catchup->are_same('streamed', {}, 'old_times');
	$pipeline->wait_for_table_state('old_fractions', 'stopped');
	like($pipeline->table_status('old_fractions', 'last_error_detail'), qr/ALTER TABLE \.\.\. FORCE/, 'fractions in the old format stop the table, and the detail says what helps');
	$source->sql('alter table shop.old_fractions force');
	$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.old_fractions')});
	$pipeline->wait_for_table_state('old_fractions', 'streaming');
	$source->sql(q{insert into shop.old_fractions values (3, '-0:00:00.25')});
	$pipeline->wait_for_catchup->are_same('renewed', {}, 'old_fractions');
	$source->start_writers(2, $change);
	my $seen = $pipeline->status('changes');
	$pipeline->wait_for_status('changes', qr/^(?!$seen$)\d{2,}$/);
	$postgres->stop;
	$source->sql('set @@system_versioning_insert_history = 1', q{insert into shop.declared (id, v, u, rs, re) values (999, 1, 999, '2020-01-01', '2021-01-01')}, 'update shop.declared set v = v + 1', 'delete from shop.invisible where id < 10');
	$source->stop_writers;
	$postgres->start;
	$pipeline->wait_for_state('streaming')->wait_for_catchup->are_same('streamed, and after a restart', \%title, @names);
	is($pipeline->status('tables_stopped'), 0, 'D22: no table is stopped');
	is($postgres->psql(q{select string_agg(relname || ' ' || attname, ', ' order by relname, attnum) from pg_attribute a join pg_class c on c.oid = attrelid where relnamespace = 'shop'::regnamespace and relkind = 'r' and attname in ('rs', 're')}),
		'declared rs, declared re, invisible rs, invisible re', 'D22: limits of versions are columns where they are declared');
	ok($postgres->poll(q{select count(*) from pg_index where indrelid in ('shop.plain'::regclass, 'shop.declared'::regclass) and indisunique and indnatts = 1 and not indisprimary and indisvalid}, '2'), 'D22: unique is the current row');
	$pipeline->is_verified('cdc_verify finds the same', @names);

	$source->sql('alter table shop.plain drop system versioning', q{insert into shop.plain values (777, 1, 777)});
	$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_tables;
	$pipeline->is_same('D22: not versioned any more', 'plain');
}

sub extremes
{
	$source->sql('set sql_generate_invisible_primary_key = on', 'create table shop.gipk (v int, w varchar(9))', q{insert into shop.gipk values (1, 'a'), (2, 'b'), (2, 'b')}, 'set sql_generate_invisible_primary_key = off');
	# 32 MB of binary JSON: arrays within arrays, and an object with many keys
	my $array = q{concat('[', repeat('[1, [2.5, [true, ["x", [null, {"k": [123456]}]]]]],', 390000), '0]')};
	my $object = q{(select json_objectagg(concat('key', i), i) from (with recursive n as (select 0 i union all select i + 1 from n where i < 60000) select i from n) numbers)};
	$source->sql('set session cte_max_recursion_depth = 100000', 'set session group_concat_max_len = 100000000', 'create table shop.big (id int primary key, j json)', "insert into shop.big values (1, $array)");
	cmp_ok($source->query_value('select json_storage_size(j) from shop.big'), '>', 32 << 20, 'M24: the document has more than 32 MB');
	$pipeline->start->wait_for_state('streaming')->wait_for_tables;
	$source->sql('insert into shop.big select 2, j from shop.big', "insert into shop.big values (3, $object)", q{insert into shop.gipk values (3, 'c'), (3, 'c')}, q{update shop.gipk set w = 'd' where v = 1}, 'delete from shop.gipk where v = 2 limit 1');
	$pipeline->wait_for_catchup;
	is($pipeline->status('tables_stopped'), 0, 'no table is stopped') or diag($pipeline->describe);
	is($postgres->psql('select string_agg(a.attname, $$,$$ order by attnum) from pg_attribute a where attrelid = $$shop.gipk$$::regclass and attnum > 0'), 'my_row_id,v,w', 'M38: a generated invisible key is a column');
	$pipeline->is_same('M38: a generated invisible key', 'gipk');
	is($postgres->psql('select string_agg(jsonb_array_length(j)::text, $$,$$ order by id) from shop.big where id < 3'), '390001,390001', 'M24: the document came by both ways');
	is($postgres->psql('select count(distinct j) from shop.big where id < 3'), '1', 'M24: and is the same');
	is($postgres->psql('select j->389999 from shop.big where id = 2'), '[1, [2.5, [true, ["x", [null, {"k": [123456]}]]]]]', 'M24: to its end');
	is($postgres->psql(q{select count(*) || ' ' || sum(value::bigint) || ' ' || bool_and(key = 'key' || value) from shop.big, jsonb_each_text(j) where id = 3}), '60001 ' . 60000 * 60001 / 2 . ' true', 'M24: an object with many keys');
}

$source->is_mysql ? extremes() : versioned();

done_testing();
