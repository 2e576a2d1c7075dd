# Option schema_changes: what becomes of each kind of change in each mode; and kinds that are left out.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my @modes = qw(evolve try_evolve lenient ignore exception);
my @tables = qw(added dropped renamed narrowed widened nullable rekeyed viewed seen);
my %alter = (
	added => 'add c int not null default 7',
	dropped => 'drop w',
	renamed => 'change w ww varchar(20) not null',
	narrowed => 'modify v smallint',
	widened => 'modify v bigint',
	nullable => 'modify n int',
	rekeyed => 'drop primary key, add primary key (n)',
	viewed => 'modify v varchar(20), add c int default 3',
	seen => 'drop w',
);
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int, w varchar(20)" . (/^(dropped|renamed|seen)$/ ? ' not null' : '') . ', n int not null)', "insert into shop.$_ values (1, 70, 'one', 1), (2, 2, 'two', 2)") } @tables, qw(calm again crossed prepared));
my %pipeline;
for my $mode (@modes)
{
	$pipeline{$mode} = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => $mode, target_schema => $mode, options => qq({"schema_changes": "$mode"}));
	if ($mode eq 'evolve')
	{
		$pipeline{$mode}->setup;
		$postgres->append_conf("max_worker_processes = 50\nmax_replication_slots = 50");
		$postgres->append_conf('max_active_replication_origins = 50') if $postgres->major >= 18;
		$postgres->restart;
	}
	$pipeline{$mode}->start->wait_for_state('streaming')->wait_for_tables;
	$postgres->psql("create view public.view_$mode as select v from $mode.viewed; create view public.seen_$mode as select w from $mode.seen");
}
$pipeline{some} = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'some', target_schema => 'some', options => '{"schema_changes_exclude": ["drop_column", "add_column"]}')->start->wait_for_state('streaming')->wait_for_tables;
$pipeline{only} = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'only', target_schema => 'only', options => '{"schema_changes_include": ["add_column"]}')->start->wait_for_state('streaming')->wait_for_tables;

$source->sql(map { "alter table shop.$_ $alter{$_}" } @tables);
$source->sql(q{insert into shop.added values (3, 3, 'three', 3, 8)}, q{insert into shop.dropped values (3, 3, 3)}, q{insert into shop.renamed values (3, 3, 'three', 3)}, q{insert into shop.narrowed values (3, 3, 'three', 3)},
	q{insert into shop.widened values (3, 99999999999, 'three', 3)}, q{insert into shop.nullable values (3, 3, 'three', null)}, q{insert into shop.rekeyed values (1, 3, 'three', 3)}, q{insert into shop.viewed values (3, 'x', 'three', 3, 4)},
	q{insert into shop.seen values (3, 3, 3)});
$_->wait_for_catchup->wait_for_tables for values %pipeline;

sub state_of { my ($mode, $table) = @_; return $pipeline{$mode}->table_status($table, 'state'); }
sub rows { my ($mode, $table, $columns) = @_; return $postgres->psql(qq{select string_agg(concat_ws(' ', $columns), ',' order by id, n) from $mode.$table}); }
sub result { my ($mode, $table) = @_; return $postgres->psql(qq{select string_agg(result, ' ') from cdc_schema_history where pipeline = '$mode' and source_table = '$table'}); }
sub column { my ($mode, $table, $column) = @_; return $postgres->psql(qq{select format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end from pg_attribute where attrelid = '$mode.$table'::regclass and attname = '$column' and not attisdropped}); }

# what a view hinders stops the table, or is passed over
my %expect = (
	evolve => [ qw(streaming streaming streaming streaming streaming streaming streaming stopped stopped) ],
	try_evolve => [ qw(streaming streaming streaming streaming streaming streaming streaming stopped streaming) ],
	lenient => [ qw(streaming streaming streaming streaming streaming streaming streaming stopped streaming) ],
	ignore => [ qw(streaming streaming streaming streaming stopped stopped stopped stopped streaming) ],
	exception => [ ('stopped') x 9 ],
	some => [ qw(streaming streaming streaming streaming streaming streaming streaming streaming streaming) ],
	only => [ qw(streaming streaming streaming streaming stopped stopped stopped stopped streaming) ],
);
for my $mode (@modes, 'some', 'only')
{
	is(join(' ', map { "$_: " . state_of($mode, $_) } @tables), join(' ', map { "$tables[$_]: $expect{$mode}[$_]" } 0 .. $#tables), "$mode: which tables stream")
	  or diag($postgres->psql("select source_table, last_error, last_error_detail from pg_stat_cdc_table where pipeline = '$mode' and last_error is not null"));
}
# evolve and try_evolve: as the source
for my $mode (qw(evolve try_evolve))
{
	$pipeline{$mode}->is_same("$mode: as the source", @tables[ 0 .. 6 ]);
}
is(result('try_evolve', 'seen') . rows('try_evolve', 'seen', q{id, coalesce(w, '-')}), 'failed1 one,2 two,3 -', 'try_evolve: a column that cannot go stays, and rows come without it');
is(result('evolve', 'viewed'), 'stopped', 'evolve: what cannot be carried out is in the history');
is($postgres->psql(q{select array_to_string(kinds, ' '), result, commands from cdc_schema_history where pipeline = 'evolve' and source_table = 'dropped'}), 'drop_column|applied|{"ALTER TABLE evolve.dropped DROP COLUMN w"}', 'the history has kind and command');
is($postgres->psql(q{select statement, file is not null, source_time > now() - interval '1 day' from cdc_schema_history where pipeline = 'evolve' and source_table = 'dropped'}), 'alter table shop.dropped drop w|t|t', '... and statement, place and time');

# lenient: nothing is lost
is(rows('lenient', 'dropped', q{id, coalesce(w, '-')}), '1 one,2 two,3 -', 'lenient: a column that went stays, new rows have NULL');
is(rows('lenient', 'renamed', q{id, coalesce(w, '-'), ww}), '1 one one,2 two two,3 - three', 'lenient: a column with a new name is kept and added');
is(column('lenient', 'narrowed', 'v'), 'integer', 'lenient: a type that became narrower stays wide');
is(column('lenient', 'widened', 'v'), 'bigint', 'lenient: one that became wider follows');
is(rows('lenient', 'added', 'id, c'), '1 7,2 7,3 8', 'lenient: a column comes');

$postgres->psql(q{select cdc_resync_table('lenient', 'shop.dropped'); select cdc_resync_table('lenient', 'shop.renamed')});
$pipeline{lenient}->wait_for_state('streaming')->wait_for_catchup->wait_for_table_state($_, 'streaming') for qw(dropped renamed);
$postgres->poll(q{select count(*) from pg_class where relname like 'cdc\_resync%'}, '0') or die "the copies do not take their places\n";
is(rows('lenient', 'dropped', q{id, coalesce(w, '-')}) . ' ' . rows('lenient', 'renamed', q{id, coalesce(w, '-'), ww}), '1 one,2 two,3 - 1 one one,2 two two,3 - three', 'lenient: also over a new copy');

# lenient: a column of a name whose column stayed: neither may take the other's values
$postgres->psql('alter table lenient.prepared add c int');
$source->sql('alter table shop.again drop v', 'alter table shop.again add v int default 5', $source->is_mariadb ? 'alter table shop.crossed change v vv int, add v int default 6' : 'alter table shop.crossed rename column v to vv, add v int default 6', 'alter table shop.prepared add c int default 7',
	'insert into shop.again (id, n) values (3, 3)', 'insert into shop.crossed (id, vv, n) values (3, 3, 3)', 'insert into shop.prepared (id, n) values (3, 3)');
$pipeline{lenient}->wait_for_table_state($_, 'stopped') for qw(again crossed);
$pipeline{lenient}->wait_for_catchup;
like($pipeline{lenient}->table_status('again', "last_error_detail || ' ' || last_error_hint"), qr/holds values that the source has no more.*Rename the target's column/, 'lenient: a column that comes under the name of one that stayed stops the table');
is(rows('lenient', 'again', 'id, v'), '1 70,2 2', 'lenient: nothing is lost');
is(rows('lenient', 'prepared', 'id, c'), '1 7,2 7,3 7', 'lenient: a column that holds nothing is taken');
$postgres->psql(qq{alter table lenient.$_ rename v to v_before; select cdc_resync_table('lenient', 'shop.$_')}) for qw(again crossed);
$pipeline{lenient}->wait_for_table_state($_, 'streaming') for qw(again crossed);
$postgres->poll(q{select count(*) from pg_class where relname like 'cdc\_resync%'}, '0') or die "the copies do not take their places\n";
is(rows('lenient', 'again', q{id, v, coalesce(v_before::text, '-')}) . ' ' . rows('lenient', 'crossed', q{id, v, vv, coalesce(v_before::text, '-')}), '1 5 70,2 5 2,3 5 - 1 6 70 70,2 6 2 2,3 6 3 -', 'lenient: with the old one out of the way both are there');

# ignore: the target stays as it is
is(column('ignore', 'added', 'c'), '', 'ignore: a column that came is left out');
is(rows('ignore', 'added', 'id, v'), '1 70,2 2,3 3', 'ignore: its rows come without it');
is(rows('ignore', 'dropped', q{id, coalesce(w, '-')}), '1 one,2 two,3 -', 'ignore: a column that went stays');
is(rows('ignore', 'renamed', q{id, coalesce(w, '-')}), '1 one,2 two,3 -', 'ignore: a column with a new name is left out');
is(result('ignore', $_), 'ignored', "ignore: recorded ($_)") for qw(added dropped renamed narrowed);
like($pipeline{ignore}->table_status('widened', 'last_error_detail'), qr/do not fit/, 'ignore: values that do not fit any more stop the table');
like($pipeline{ignore}->table_status('rekeyed', 'last_error_detail'), qr/key/, 'ignore: so does another key');

# kinds
is(column('some', 'added', 'c') . column('some', 'dropped', 'w') . column('some', 'widened', 'v'), 'varchar(20)bigint' =~ s/varchar/character varying/r, 'exclude: these kinds are ignored, others followed');
is(column('only', 'added', 'c') . column('only', 'dropped', 'w'), 'integer not nullcharacter varying(20)', 'include: all others are ignored');

# what is ignored stays so over a new copy and a restart
$postgres->psql(q{select cdc_resync_table('ignore', 'shop.added')});
$pipeline{ignore}->wait_for_state('streaming')->wait_for_table_state('added', 'streaming');
$pipeline{ignore}->stop->start->wait_for_state('streaming');
$source->sql(q{insert into shop.added values (4, 4, 'four', 4, 9)});
$pipeline{ignore}->wait_for_catchup;
is(rows('ignore', 'added', 'id, v'), '1 70,2 2,3 3,4 4', 'ignore: the same after a new copy');
is($pipeline{ignore}->verify('added'), '', 'cdc_verify() passes over what is left out');
$postgres->psql(q{alter table ignore.added add c int});
$source->sql(q{update shop.added set c = 10 where id = 4});
$pipeline{ignore}->wait_for_catchup;
is($postgres->psql('select c from ignore.added where id = 4'), '10', 'a column that is added by hand is written from then on');

is($postgres->psql(q{create role watcher; grant pg_monitor to watcher; set role watcher; select count(*) from cdc_schema_history}), '0', 'the history is for the owner');
$postgres->psql(q{select cdc_alter_pipeline('evolve', options => '{"schema_history_max_rows": 3}')});
$source->sql(map { "alter table shop.added add x$_ int" } 1 .. 5);
$pipeline{evolve}->wait_for_state('streaming')->wait_for_catchup;
is($postgres->psql(q{select count(*) from cdc_schema_history where pipeline = 'evolve'}), '3', 'D33: the history is bounded');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
